"""lad: least absolute deviations, smoothed near zero so that L-BFGS can follow."""

from __future__ import annotations

from unpinn import precision
from unpinn.network import make_model
from unpinn.rivals import _checks as checks
from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._working import spread_of_readings, working_units
from unpinn.training import Absolute, Fit, train


def _run(task: Task) -> Fit:
    smooth = checks.positive(task, "lad", "smooth")
    with precision.scope("float32"):
        model = make_model(
            task.problem, task.observations, task.protocol.architecture, task.seed,
            task.protocol.scaled,
        )  # fmt: skip
    units = working_units(model, task.observations)
    penalty = Absolute(smooth=smooth * spread_of_readings(task.observations, units))
    fit = train(
        task.problem, task.observations, task.protocol, task.seed, penalty=penalty,
        directory=task.place("lad"), watcher=task.watcher,
    )  # fmt: skip
    return fit.with_details(smooth=penalty.smooth)


LAD = register(
    Method("lad", "least absolute deviations", _run, options={"smooth": 1e-3}),
)
