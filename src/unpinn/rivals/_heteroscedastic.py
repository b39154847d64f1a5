"""heteroscedastic: the readings' level of error is an output of the network."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn.rivals import _checks as checks
from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._warm_up import go_on, warm_up
from unpinn.rivals._working import robust_deviation
from unpinn.training import Fit, Heteroscedastic


def _run(task: Task) -> Fit:
    natural = checks.choice(task, "heteroscedastic", "scale", ("matched", "natural")) == "natural"
    columns = tuple(f"log_level_{name}" for name in task.observations.quantities)
    start = warm_up(task, columns)
    level = max(robust_deviation(start.misfits), start.floor)
    unit = 1.0 if natural else 2 * level**2
    penalty = Heteroscedastic(offset=math.log(level), floor=start.floor, unit=unit)
    fit = go_on(task, start, penalty)
    levels = levels_at(fit, penalty, task.observations.points) * start.units
    median = dict(
        zip(task.observations.quantities, np.median(levels, axis=0).tolist(), strict=True)
    )
    return fit.with_details(median_level=median, offset=penalty.offset, unit=unit)


def levels_at(fit: Fit, penalty: Heteroscedastic, points: np.ndarray) -> np.ndarray:
    """The levels of error that a fit states at points, (n, quantities), in working units."""
    with precision.scope(fit.precision):
        places = jnp.asarray(points, np.dtype(fit.precision))
        columns = np.asarray(fit.model.predict(places))
    extra = columns[:, len(fit.problem.columns) :]
    return np.hypot(np.exp(extra + penalty.offset), penalty.floor)


HETEROSCEDASTIC = register(
    Method(
        "heteroscedastic",
        "a Gaussian likelihood whose level the network gives at every place",
        _run,
        options={"scale": "matched"},
    )
)
