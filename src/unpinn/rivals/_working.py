"""The units that a loss works in, and a fit's loss put together again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from unpinn.network import Model
from unpinn.problem import Observations
from unpinn.training import Fit, Objective, make_data_term, make_objective, reading_units

# The median of |z| for a standard Gaussian z.
_MEDIAN = 0.6744897501960817


def working_units(model: Model, observations: Observations) -> np.ndarray:
    """What one working unit of each quantity is in the user's own, (quantities,)."""
    if not model.layout.scaled:
        return np.ones(len(observations.quantities))
    return reading_units(model, observations)


def units_of(fit: Fit) -> np.ndarray:
    """What one working unit of each quantity is for a fit, (quantities,)."""
    assert fit.observations is not None
    return working_units(fit.model, fit.observations)


def working_misfits(fit: Fit) -> np.ndarray:
    """Prediction minus reading in working units, (N, quantities), NaN where missing."""
    return fit.misfits() / units_of(fit)


def robust_deviation(values: np.ndarray) -> float:
    r"""A standard deviation about zero that half of the values cannot spoil: median |r| / .6745.

    >>> round(robust_deviation(np.array([-1.0, 1.0, 1.0, -1.0, 1e9])), 3)
    1.483
    """
    present = np.abs(values[np.isfinite(values)])
    return float(np.median(present) / _MEDIAN) if present.size else 0.0


def spread_of_readings(observations: Observations, units: np.ndarray) -> float:
    """Half the width of the middle nine tenths of the readings, in working units."""
    widths = []
    for column, unit in zip(observations.values.T, units, strict=True):
        low, high = np.nanquantile(column, [0.05, 0.95])
        widths.append((high - low) / 2 / unit)
    typical = float(np.mean(widths))
    return typical if typical > 0 else 1.0


def objective_of(fit: Fit, weights: np.ndarray | None = None, kind: str | None = None) -> Objective:
    """The loss that a fit's last stage was trained on, with squares as the penalty.

    Must be called within the scope of the precision asked for.

    Arguments:
        fit: whose terms, scales and weights to take.
        weights: how much each reading counts, (N,); all alike unless told.
        kind: the precision; the fit's own unless told.
    """
    assert fit.observations is not None
    data = make_data_term(fit.problem, fit.observations, weights, None, units_of(fit))
    objective = make_objective(fit.problem, data, fit.seed, None, fit.details.get("scales"))
    used = fit.details.get("weights", {})
    factors = [used.get(n, w) for n, w in zip(objective.names, objective.weights, strict=True)]
    objective = objective.weighted(np.array(factors, np.float64))
    number = np.dtype(kind or fit.precision)
    return jax.tree_util.tree_map(
        lambda a: jnp.asarray(a, number) if hasattr(a, "dtype") else a, objective
    )
