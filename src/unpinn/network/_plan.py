r"""Which Taylor series to push through a network so that every wanted derivative comes out.

A derivative along one direction needs one univariate series. A mixed derivative is a rational
combination of pure derivatives along several directions (polarisation): for order k,
$$ D_v^k = \sum_{|\beta|=k} \frac{k!}{\beta!}\, v^\beta\, \partial^\beta , $$
so a few directions v give a linear system for the wanted $\partial^\alpha$.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unpinn.problem import Derivative

Orders = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The directions and orders to propagate, and how to read derivatives off them.

    Arguments:
        dimension: number of coordinates.
        directions: integer vectors.
        orders: the highest derivative wanted along each direction.
        laplacian: the weight of each coordinate's second derivative in the laplacian channel, or
            None where nobody reads it. The coordinates of non-zero weight are directions.
    """

    dimension: int
    directions: tuple[tuple[int, ...], ...] = ()
    orders: tuple[int, ...] = ()
    laplacian: tuple[float, ...] | None = None

    @property
    def channels(self) -> int:
        """Value, every Taylor coefficient, and the laplacian."""
        return 1 + sum(self.orders) + (self.laplacian is not None)

    def channel(self, direction: int, order: int) -> int:
        """The place of one Taylor coefficient in the stack."""
        return sum(self.orders[:direction]) + order

    def recipe(self, orders: Orders) -> tuple[tuple[int, float], ...]:
        """A derivative as a combination of channels: pairs (channel, factor)."""
        total = sum(orders)
        if total == 0:
            return ((0, 1.0),)
        usable = [
            (number, direction)
            for number, direction in enumerate(self.directions)
            if self.orders[number] >= total and _within(direction, orders)
        ]
        weights = _solve(orders, tuple(direction for _, direction in usable))
        if weights is None:
            raise ValueError(f"the plan {self} does not hold the derivative {orders}")
        # Channels hold Taylor coefficients, which are derivatives over a factorial.
        factorial = math.factorial(total)
        return tuple(
            (self.channel(number, total), weight * factorial)
            for (number, _), weight in zip(usable, weights, strict=True)
            if weight != 0.0
        )


@lru_cache(maxsize=512)
def make_plan(
    derivatives: frozenset[Derivative], dimension: int, space: tuple[float | int, ...]
) -> Plan:
    """The cheapest directions found for a set of derivatives.

    Arguments:
        derivatives: what is wanted.
        dimension: number of coordinates.
        space: the weights of the coordinates in the laplacian (zero for time).
    """
    depth: dict[tuple[int, ...], int] = {}

    def want(direction: tuple[int, ...], order: int) -> None:
        depth[direction] = max(order, depth.get(direction, 0))

    multi = {d.orders for d in derivatives if not isinstance(d.orders, str)}
    wants_laplacian = any(d.orders == "laplacian" for d in derivatives)
    for orders in sorted(multi, key=lambda o: (sum(o), o)):
        if _is_pure(orders) and sum(orders) > 0:
            want(tuple(int(o > 0) for o in orders), sum(orders))
    if wants_laplacian:
        for axis in np.flatnonzero(space):
            want(_axis(dimension, int(axis)), 1)
    for orders in sorted(multi, key=lambda o: (sum(o), o)):
        if sum(orders) > 0 and not _is_pure(orders):
            for direction in _polarise(orders, depth):
                want(direction, sum(orders))
    directions = tuple(sorted(depth, key=lambda d: (sum(map(abs, d)), d), reverse=False))
    return Plan(
        dimension,
        directions,
        tuple(depth[direction] for direction in directions),
        tuple(float(s) for s in space) if wants_laplacian else None,
    )


def _is_pure(orders: Orders) -> bool:
    return sum(o > 0 for o in orders) <= 1


def _axis(dimension: int, axis: int) -> tuple[int, ...]:
    return tuple(int(k == axis) for k in range(dimension))


def _within(direction: tuple[int, ...], orders: Orders) -> bool:
    """Whether a direction only moves coordinates that the derivative differentiates."""
    return all(orders[k] > 0 for k, step in enumerate(direction) if step != 0)


def _candidates(orders: Orders) -> Iterable[tuple[int, ...]]:
    """Integer vectors over the differentiated coordinates, small ones first."""
    active = [k for k, o in enumerate(orders) if o > 0]
    reach = max(1, sum(orders) - 1)
    steps = sorted(range(-reach, reach + 1), key=abs)
    vectors = []
    for combination in itertools.product(steps, repeat=len(active)):
        first = next((s for s in combination if s != 0), 0)
        if first <= 0 or math.gcd(*combination) > 1:
            continue
        full = [0] * len(orders)
        for axis, step in zip(active, combination, strict=True):
            full[axis] = step
        vectors.append(tuple(full))
    return sorted(vectors, key=lambda v: (sum(map(abs, v)), tuple(-s for s in v)))


def _polarise(orders: Orders, have: dict[tuple[int, ...], int]) -> list[tuple[int, ...]]:
    """Directions that determine a mixed derivative, as few more channels as found."""
    total = sum(orders)
    ranked = sorted(_candidates(orders), key=lambda v: have.get(v, 0) < total)
    # Oblique directions alone often need fewer: u_xy is (D_(1,1)^2 - D_(1,-1)^2) / 4.
    oblique = [
        v for v in ranked if all(step != 0 or o == 0 for step, o in zip(v, orders, strict=True))
    ]
    found = [_sweep(orders, candidates, have) for candidates in (ranked, oblique)]
    sets = [directions for directions in found if directions]
    if not sets:
        raise ValueError(f"no directions found for the mixed derivative {orders}")
    return min(sets, key=lambda vs: sum(max(0, total - have.get(v, 0)) for v in vs))


def _sweep(
    orders: Orders, candidates: list[tuple[int, ...]], have: dict[tuple[int, ...], int]
) -> list[tuple[int, ...]]:
    """The first candidates that determine a mixed derivative, without those that can go."""
    total = sum(orders)
    chosen: list[tuple[int, ...]] = []
    for candidate in candidates:
        chosen.append(candidate)
        if _solve(orders, tuple(chosen)) is not None:
            break
    else:
        return []
    # The sweep above may have taken more than it needs: drop what can go, new directions first.
    for candidate in sorted(chosen, key=lambda v: have.get(v, 0) >= total):
        rest = tuple(v for v in chosen if v != candidate)
        if _solve(orders, rest) is not None:
            chosen = list(rest)
    return chosen


@lru_cache(maxsize=4096)
def _solve(orders: Orders, directions: tuple[tuple[int, ...], ...]) -> tuple[float, ...] | None:
    """Weights c with sum_v c_v D_v^k = the derivative, or None."""
    if not directions:
        return None
    total, dimension = sum(orders), len(orders)
    monomials = [
        b for b in itertools.product(range(total + 1), repeat=dimension) if sum(b) == total
    ]
    matrix = np.array(
        [
            [
                math.factorial(total)
                / math.prod(math.factorial(b) for b in beta)
                * math.prod(step**b for step, b in zip(v, beta, strict=True))
                for v in directions
            ]
            for beta in monomials
        ]
    )
    target = np.array([float(beta == orders) for beta in monomials])
    weights, *_ = np.linalg.lstsq(matrix, target, rcond=None)
    if np.abs(matrix @ weights - target).max() > 1e-9:
        return None
    return tuple(float(w) if abs(w) > 1e-12 else 0.0 for w in weights)
