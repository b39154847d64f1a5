"""Where equations are enforced: grids, Sobol points, random points, or points of one's own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unpinn._errors import UserError

Box = Mapping[str, Sequence[float | int]]
Where = Callable[..., Any]


@runtime_checkable
class Sampler(Protocol):
    """Anything that lays points into a box."""

    def draw(self, box: Box, seed: int) -> np.ndarray:
        """Points as an (n, dimensions) array in the order of the box's coordinates."""
        ...


@dataclass(frozen=True)
class Grid:
    """A uniform grid with exact counts, one a coordinate, both ends included.

    Arguments:
        counts: points along each coordinate.
        where: keep the points for which this function of the coordinates holds.
        ends: False places the points at the middles of equal cells instead.

    >>> Grid(3, 2).draw({"x": (0, 1), "y": (0, 1)}, seed=0).shape
    (6, 2)
    """

    counts: tuple[int, ...]
    where: Where | None = None
    ends: bool = True

    def __init__(self, *counts: int | np.integer, where: Where | None = None, ends: bool = True):
        if not counts or any(not isinstance(n, (int, np.integer)) or n < 1 for n in counts):
            raise UserError(f"a grid needs whole counts of 1 or more, not {counts}")
        object.__setattr__(self, "counts", tuple(int(n) for n in counts))
        object.__setattr__(self, "where", where)
        object.__setattr__(self, "ends", ends)

    def draw(self, box: Box, seed: int = 0) -> np.ndarray:
        """Lay the grid into the box."""
        if len(self.counts) != len(box):
            raise UserError(
                f"a grid of {len(self.counts)} counts {self.counts} does not fit the "
                f"{len(box)} coordinates {', '.join(box)}"
            )
        axes = [self._axis(n, *box[name]) for n, name in zip(self.counts, box, strict=True)]
        mesh = np.meshgrid(*axes, indexing="ij")
        points = np.stack([part.ravel() for part in mesh], axis=1)
        return _keep(points, box, self.where)

    def _axis(self, count: int, low: float | int, high: float | int) -> np.ndarray:
        if self.ends and count > 1:
            return np.linspace(low, high, count)
        return low + (np.arange(count) + 0.5) * (high - low) / count


@dataclass(frozen=True)
class Sobol:
    """Scrambled Sobol points: even coverage at any count.

    >>> Sobol(5).draw({"x": (0, 1)}, seed=1).shape
    (5, 1)
    """

    count: int
    where: Where | None = None

    def draw(self, box: Box, seed: int) -> np.ndarray:
        """Lay the points into the box."""
        from scipy.stats import qmc

        def more(power: int) -> np.ndarray:
            return qmc.Sobol(len(box), scramble=True, rng=np.random.default_rng(seed)).random_base2(
                power
            )

        return _fill(self.count, box, self.where, more)


@dataclass(frozen=True)
class Random:
    """Independent uniform points."""

    count: int
    where: Where | None = None

    def draw(self, box: Box, seed: int) -> np.ndarray:
        """Lay the points into the box."""

        def more(power: int) -> np.ndarray:
            return np.random.default_rng(seed).random((2**power, len(box)))

        return _fill(self.count, box, self.where, more)


@dataclass(frozen=True, eq=False)
class Points:
    """Points of one's own, as an (n, dimensions) array."""

    points: Any

    def draw(self, box: Box, seed: int = 0) -> np.ndarray:
        """The points, checked against the box."""
        points = np.asarray(self.points, np.float64)
        if points.ndim == 1 and len(box) == 1:
            points = points[:, None]
        if points.ndim != 2 or points.shape[1] != len(box) or len(points) == 0:
            raise UserError(
                f"points must be a non-empty array (n, {len(box)}) of {', '.join(box)}, "
                f"not of shape {points.shape}"
            )
        check_inside(points, box, "the points")
        return points


def check_inside(points: np.ndarray, box: Box, what: str) -> None:
    """Refuse points that are not finite or lie outside the box (beyond rounding)."""
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise UserError(f"{what} have a coordinate that is not finite in row {row}")
    for column, (name, (low, high)) in enumerate(box.items()):
        slack = 1e-6 * (high - low)
        outside = (points[:, column] < low - slack) | (points[:, column] > high + slack)
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            raise UserError(
                f"{what} lie outside the domain in {int(outside.sum())} rows, first in row {row} "
                f"({name} = {points[row, column]:g}, domain [{low:g}, {high:g}]); "
                "widen the domain or drop those rows"
            )


def _fill(count: int, box: Box, where: Where | None, more) -> np.ndarray:
    if not isinstance(count, (int, np.integer)) or count < 1:
        raise UserError(f"a sampler needs a whole count of 1 or more, not {count!r}")
    low = np.array([ends[0] for ends in box.values()], np.float64)
    high = np.array([ends[1] for ends in box.values()], np.float64)
    power = math.ceil(math.log2(count)) if count > 1 else 0
    for _ in range(8):
        # A longer sequence begins with the shorter one, so the points do not depend on how often
        # the filter made us ask again.
        points = low + more(power) * (high - low)
        kept = points if where is None else points[_mask(points, box, where)]
        if len(kept) >= count:
            return kept[:count]
        power += 1
    raise UserError(
        f"the subdomain filter keeps almost no point of the box ({len(kept)} of {len(points)}); "
        "check its sign and units"
    )


def _keep(points: np.ndarray, box: Box, where: Where | None) -> np.ndarray:
    if where is None:
        return points
    kept = points[_mask(points, box, where)]
    if len(kept) == 0:
        raise UserError("the subdomain filter keeps no point of the grid; check its sign and units")
    return kept


def _mask(points: np.ndarray, box: Box, where: Where) -> np.ndarray:
    columns = {name: points[:, k] for k, name in enumerate(box)}
    parameters = inspect.signature(where).parameters
    wanted = [name for name in parameters if name in columns]
    unknown = [
        name
        for name, parameter in parameters.items()
        if name not in columns and parameter.default is inspect.Parameter.empty
    ]
    if unknown:
        raise UserError(
            f"the subdomain filter takes {unknown[0]!r}, which is no coordinate here "
            f"({', '.join(columns)})"
        )
    mask = np.asarray(where(**{name: columns[name] for name in wanted}))
    if mask.shape != (len(points),):
        raise UserError("the subdomain filter must give one true or false a point")
    return mask.astype(bool)
