r"""A Gaussian around the optimum in all trained numbers, hidden layers included.

The same as in the last layer alone (see `laplace`), with the Jacobian J of the weighted residuals
in every weight. Where the last layer alone is free, the hidden layers are taken for known although
they were fitted to the same readings, and intervals come out too narrow. Quantities are linearised:
the variance of g is $\nabla g^\top (J^\top J + s^{-2} I)^{-1} \nabla g$. Where there are fewer
residuals than numbers, the same is found from the smaller matrix $J J^\top + s^{-2} I$.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from unpinn import precision
from unpinn._errors import UserError
from unpinn.network import Model, split
from unpinn.problem import Expression
from unpinn.rivals._laplace import _whitened, trusted
from unpinn.rivals._uncertainty import Band, Interval, Uncertainty
from unpinn.rivals._working import objective_of
from unpinn.training import DataTerm, Fit, Objective
from unpinn.training._fit import _reader

# The square of this many entries is held, and factorised; or a Jacobian of so many entries and the
# square of its rows.
MOST_NUMBERS = 8_000
MOST_ENTRIES = 200_000_000
_CHUNK = 256


def within_reach(fit: Fit) -> bool:
    """Whether a fit's network and residuals are few enough for `linearised`."""
    count = _size(fit.model)
    if count <= MOST_NUMBERS:
        return True
    with precision.scope(fit.precision):
        return count * _rows(objective_of(fit)) <= MOST_ENTRIES


def linearised(fit: Fit, level: float = 0.9, prior: float = 10.0) -> Uncertainty:
    """Intervals from the curvature of the loss in all trained numbers.

    Arguments:
        fit: a single model at the end of its training.
        level: of the intervals.
        prior: standard deviation of the trained numbers, which matters only for what neither
            readings nor equations determine.
    """
    if not prior > 0:
        raise UserError(f"linearised needs a prior above zero, not {prior}")
    count = _size(fit.model)
    if not within_reach(fit):
        raise UserError(
            f"this network has {count:,} numbers, too many for the method 'linearised' with so "
            "many readings and points; ask for 'laplace'"
        )
    weight, noise = trusted(fit)
    with precision.scope("float64"):
        model = precision.cast(fit.model, "float64")
        objective = _whitened(fit, weight, noise)
        kind = _Wide if _rows(objective) < count else _Tall
        gaussian = _Gaussian(fit, model, kind.of(_jacobians(objective, model), count, prior), level)
        unknowns = gaussian.unknowns()
    details = {"numbers": count, "noise": noise, "prior": prior}
    return Uncertainty("linearised", level, unknowns, gaussian.band, details)


@runtime_checkable
class _Spread(Protocol):
    """The covariance of all trained numbers, as far as it is asked for."""

    def variance(self, slopes: np.ndarray) -> np.ndarray:
        """Of quantities with these gradients, (n, numbers)."""
        ...


@dataclass(frozen=True, eq=False)
class _Tall:
    """More residuals than numbers: by the Cholesky factor of the numbers' precision."""

    factor: np.ndarray

    @classmethod
    def of(cls, jacobians: Iterator[np.ndarray], numbers: int, prior: float) -> _Tall:
        total = np.eye(numbers) / prior**2
        for jacobian in jacobians:
            total += jacobian.T @ jacobian
        return cls(np.linalg.cholesky(total))

    def variance(self, slopes: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        return (solve_triangular(self.factor, slopes.T, lower=True) ** 2).sum(axis=0)


@dataclass(frozen=True, eq=False)
class _Wide:
    """Fewer residuals than numbers: what they tell is taken off the prior's variance."""

    jacobian: np.ndarray
    factor: np.ndarray
    prior: float

    @classmethod
    def of(cls, jacobians: Iterator[np.ndarray], numbers: int, prior: float) -> _Wide:
        jacobian = np.concatenate(list(jacobians))
        gram = jacobian @ jacobian.T
        return cls(jacobian, np.linalg.cholesky(gram + np.eye(len(gram)) / prior**2), prior)

    def variance(self, slopes: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        told = solve_triangular(self.factor, self.jacobian @ slopes.T, lower=True)
        left = (slopes**2).sum(axis=1) - (told**2).sum(axis=0)
        return self.prior**2 * np.maximum(left, 0.0)


def _rows(objective: Objective) -> int:
    """How many residuals the loss has."""
    assert objective.data is not None
    terms = [] if objective.equations is None else [objective.equations]
    rows = sum(len(t.points) * len(t.names) for t in (*terms, *objective.conditions))
    return int(rows + objective.data.values.size)


def _jacobians(objective: Objective, model: Model) -> Iterator[np.ndarray]:
    """The Jacobian of all residuals, in blocks of rows."""
    data = objective.data
    assert data is not None
    for begin in range(0, len(data.points), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        parts = (data.points[rows], data.values[rows], data.weights[rows])
        yield np.asarray(_data_jacobian(data, objective.weights[0], parts, model))
    place = 1
    terms = [] if objective.equations is None else [objective.equations]
    for term in (*terms, *objective.conditions):
        factors = objective.weights[place : place + len(term.names)] / term.points.shape[0]
        place += len(term.names)
        for begin in range(0, len(term.points), _CHUNK):
            points = term.points[begin : begin + _CHUNK]
            yield np.asarray(_term_jacobian(term.expressions, term.scales, factors, points, model))


def _size(model: Model) -> int:
    return sum(leaf.size for leaf in jax.tree_util.tree_leaves(split(model)[0]))


def _rebuilding(model: Model):
    """The trained numbers as a vector, and the way back to a model."""
    trained, rest = split(model)
    phi, unravel = ravel_pytree(trained)
    return phi, lambda numbers: eqx.combine(unravel(numbers), rest)


@eqx.filter_jit
def _data_jacobian(data: DataTerm, factor, parts, model: Model) -> jax.Array:
    phi, rebuild = _rebuilding(model)

    def one(point, value, weight):
        where = lambda d: (d.points, d.values, d.weights)  # noqa: E731
        single = eqx.tree_at(where, data, (point[None], value[None], weight[None]))
        return jax.jacrev(
            lambda p: (jnp.sqrt(2 * factor * single.weights) * single.misfit(rebuild(p)))[0]
        )(phi)

    return jax.vmap(one)(*parts).reshape(-1, phi.size)


@eqx.filter_jit
def _term_jacobian(expressions, scales, factors, points, model: Model) -> jax.Array:
    phi, rebuild = _rebuilding(model)

    def one(point):
        def residual(p):
            values = rebuild(p).evaluate_all(expressions, point[None])
            return jnp.concatenate([
                jnp.sqrt(2 * factor / value.shape[1]) * value[0] / scale
                for value, scale, factor in zip(values, scales, factors, strict=True)
            ])  # fmt: skip

        return jax.jacrev(residual)(phi)

    return jax.vmap(one)(points).reshape(-1, phi.size)


@dataclass(frozen=True, eq=False)
class _Gaussian:
    """The Gaussian of all trained numbers."""

    fit: Fit
    model: Model
    spread: _Spread
    level: float

    def half(self, slopes: np.ndarray) -> np.ndarray:
        """Half the interval's width for quantities with these gradients, (n, numbers)."""
        from scipy.special import ndtri

        return float(ndtri((1 + self.level) / 2)) * np.sqrt(self.spread.variance(slopes))

    def unknowns(self) -> dict[str, Interval]:
        """Intervals in the trained numbers, carried over to the user's units."""
        phi, rebuild = _rebuilding(self.model)
        places = rebuild(jnp.arange(float(phi.size))).scalars
        found = {}
        for scalar in self.model.transforms:
            slope = np.zeros((1, phi.size))
            slope[0, round(float(places[scalar.name]))] = 1.0
            half, middle = float(self.half(slope)[0]), float(self.model.scalars[scalar.name])
            both = [
                float(scalar.natural(jnp.asarray(end), self.model.layout.scaled))
                for end in (middle - half, middle + half)
            ]
            found[scalar.name] = (min(both), max(both))
        return found

    def band(self, points: Any, what: str) -> Band:
        """The band of a field, or of a derivative of one."""
        expression = _reader(self.fit.problem, what)
        places, half = self.fit._points(points), []
        with precision.scope("float64"):
            for begin in range(0, len(places), _CHUNK):
                chunk = jnp.asarray(places[begin : begin + _CHUNK])
                half.append(self.half(np.asarray(_slopes(expression, self.model, chunk))))
        middle = self.fit.predict(places, what)
        return middle - np.concatenate(half), middle + np.concatenate(half)


@eqx.filter_jit
def _slopes(expression: Expression, model: Model, points: jax.Array) -> jax.Array:
    phi, rebuild = _rebuilding(model)

    def one(point):
        return jax.grad(lambda p: rebuild(p).evaluate(expression, point[None])[0, 0])(phi)

    return jax.vmap(one)(points)
