r"""A Gaussian around the optimum, in the last layer and the unknown numbers.

With $\varphi$ these numbers, the loss is, in units of the readings' noise, half a sum of squares
$\tfrac12\|\rho(\varphi)\|^2$: data misfits over their noise levels, residuals with the weights that
the loss gave them. With J the Jacobian of $\rho$ at the optimum and an N(0, s^2) prior,
$$ \mathrm{cov}(\varphi) = (J^\top J + s^{-2} I)^{-1}, $$
which is exact where the equations are linear in fields and unknowns. A field is linear in the last
layer, so its variance is $g^\top \mathrm{cov}\, g$ with g its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn._errors import UserError
from unpinn.network import Linear, Model, Network
from unpinn.problem import Expression
from unpinn.rivals._uncertainty import Band, Interval, Uncertainty
from unpinn.rivals._working import objective_of, units_of
from unpinn.training import DataTerm, Fit, Objective
from unpinn.training._fit import _reader
from unpinn.unlearning import fit_mixture

_CHUNK = 1024


def laplace(fit: Fit, level: float = 0.9, prior: float = 10.0) -> Uncertainty:
    """Intervals from the curvature of the loss.

    Arguments:
        fit: a single model at the end of its training.
        level: of the intervals.
        prior: standard deviation of the trained numbers, which matters only for what neither
            readings nor equations determine.
    """
    if not prior > 0:
        raise UserError(f"laplace needs a prior above zero, not {prior}")
    weight, noise = trusted(fit)
    with precision.scope("float64"):
        model = precision.cast(fit.model, "float64")
        whitened = _whitened(fit, weight, noise)
        start = numbers(model)
        gram = _gram(whitened, model) + np.eye(len(start)) / prior**2
        gaussian = _Gaussian(fit, model, np.linalg.inv(gram), level)
        unknowns = gaussian.unknowns(np.asarray(start))
    details = {"numbers": len(start), "noise": noise, "prior": prior}
    return Uncertainty("laplace", level, unknowns, gaussian.band, details)


def trusted(fit: Fit) -> tuple[np.ndarray, float]:
    """How much each reading counted in training, and the noise of one that counted in full.

    A fit in which all counted alike has one level, the root mean square of its misfits.
    """
    assert fit.observations is not None
    misfits = fit.misfits()
    ones = np.ones(len(misfits))
    weight = ones if fit.partition is None or fit.status.code == "kept" else fit.partition.weight
    if (weight == weight[0]).all():
        return ones, float(np.sqrt(np.nanmean(misfits**2)))
    assert fit.partition is not None
    noise = fit.partition.noise or fit_mixture(misfits).noise
    return weight / weight.max(), noise.low


def numbers(model: Model) -> jax.Array:
    """The last layer's weights and biases and the unknown numbers as they are trained."""
    linear = _last(model.network)
    scalars = [jnp.ravel(model.scalars[name]) for name in sorted(model.scalars)]
    return jnp.concatenate([linear.weight.ravel(), linear.bias, *scalars])


def with_numbers(model: Model, phi: jax.Array) -> Model:
    """The model with these numbers in their places."""
    linear = _last(model.network)
    outputs, inputs = linear.weight.shape
    weight, rest = phi[: outputs * inputs].reshape(outputs, inputs), phi[outputs * inputs :]
    bias, rest = rest[:outputs], rest[outputs:]
    scalars = {name: rest[k] for k, name in enumerate(sorted(model.scalars))}
    network = _with_last(model.network, Linear(weight, bias))
    return Model(network, scalars, model.extras, model.layout, model.transforms)


def _last(network: Network) -> Linear:
    if hasattr(network, "output"):
        return network.output
    return network.following(len(network.masks) - 1)


def _with_last(network: Network, linear: Linear) -> Network:
    if hasattr(network, "output"):
        return eqx.tree_at(lambda net: net.output, network, linear)
    return network.with_following(len(network.masks) - 1, linear)


def _whitened(fit: Fit, weight: np.ndarray, noise: float) -> Objective:
    """The loss with weights for which it is half the sum of squares in units of the noise."""
    objective = objective_of(fit, weight, "float64")
    data = objective.data
    assert data is not None
    # In user's units a reading of full weight has precision 1 / noise^2; what the loss gives it
    # is the factor by which the loss has to be multiplied to be a negative log posterior.
    share = np.asarray(data.weights) / units_of(fit) ** 2
    present = np.asarray(data.weights) > 0
    wanted = np.where(present, weight[:, None], 0.0).sum() / noise**2
    factor = wanted / (2 * float(objective.weights[0]) * share.sum())
    return objective.weighted(factor * objective.weights)


def _gram(objective: Objective, model: Model) -> np.ndarray:
    r"""The sum of $J^\top J$ over all terms, in blocks of points."""
    phi = numbers(model)
    total = np.zeros((len(phi), len(phi)))
    data = objective.data
    assert data is not None
    for begin in range(0, len(data.points), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        part = eqx.tree_at(
            lambda d: (d.points, d.values, d.weights),
            data,
            (data.points[rows], data.values[rows], data.weights[rows]),
        )
        total += np.asarray(_data_gram(part, objective.weights[0], model, phi))
    place = 1
    terms = [] if objective.equations is None else [objective.equations]
    for term in (*terms, *objective.conditions):
        count = len(term.names)
        factors = objective.weights[place : place + count] / term.points.shape[0]
        place += count
        for begin in range(0, len(term.points), _CHUNK):
            points = term.points[begin : begin + _CHUNK]
            arguments = (term.expressions, term.scales, factors, points)
            total += np.asarray(_term_gram(*arguments, model, phi))
    return total


@eqx.filter_jit
def _data_gram(data: DataTerm, factor, model: Model, phi: jax.Array) -> jax.Array:
    def residual(phi):
        return (jnp.sqrt(2 * factor * data.weights) * data.misfit(with_numbers(model, phi))).ravel()

    jacobian = jax.jacfwd(residual)(phi)
    return jacobian.T @ jacobian


@eqx.filter_jit
def _term_gram(expressions, scales, factors, points, model: Model, phi: jax.Array) -> jax.Array:
    def residual(phi):
        values = with_numbers(model, phi).evaluate_all(expressions, points)
        parts = [
            (jnp.sqrt(2 * factor / value.shape[1]) * value / scale).ravel()
            for value, scale, factor in zip(values, scales, factors, strict=True)
        ]
        return jnp.concatenate(parts)

    jacobian = jax.jacfwd(residual)(phi)
    return jacobian.T @ jacobian


@dataclass(frozen=True, eq=False)
class _Gaussian:
    """The Gaussian of a fit's last layer and unknowns."""

    fit: Fit
    model: Model
    covariance: np.ndarray
    level: float

    @property
    def quantile(self) -> float:
        from scipy.special import ndtri

        return float(ndtri((1 + self.level) / 2))

    def unknowns(self, phi: np.ndarray) -> dict[str, Interval]:
        """Intervals in the trained numbers, carried over to the user's units."""
        names = sorted(self.model.scalars)
        raw = dict(zip(names, range(len(phi) - len(names), len(phi)), strict=True))
        found = {}
        for scalar in self.model.transforms:
            place = raw[scalar.name]
            half = self.quantile * np.sqrt(self.covariance[place, place])
            both = [
                float(scalar.natural(end, self.model.layout.scaled))
                for end in (phi[place] - half, phi[place] + half)
            ]
            found[scalar.name] = (min(both), max(both))
        return found

    def band(self, points: Any, what: str) -> Band:
        """The band of a field, or of a derivative of one."""
        expression = _reader(self.fit.problem, what)
        places = self.fit._points(points)
        half, phi = [], numbers(self.model)
        with precision.scope("float64"):
            for begin in range(0, len(places), _CHUNK):
                chunk = jnp.asarray(places[begin : begin + _CHUNK])
                slope = np.asarray(_slope(expression, self.model, phi, chunk))
                variance = np.einsum("np,pq,nq->n", slope, self.covariance, slope)
                half.append(self.quantile * np.sqrt(np.maximum(variance, 0.0)))
        middle = self.fit.predict(places, what)
        return middle - np.concatenate(half), middle + np.concatenate(half)


@eqx.filter_jit
def _slope(expression: Expression, model: Model, phi: jax.Array, points: jax.Array) -> jax.Array:
    return jax.jacfwd(lambda p: with_numbers(model, p).evaluate(expression, points)[:, 0])(phi)
