"""student: Student's t likelihood with a learned scale."""

from __future__ import annotations

import math

import numpy as np

from unpinn.rivals import _checks as checks
from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._warm_up import go_on, warm_up
from unpinn.rivals._working import robust_deviation
from unpinn.training import Fit, StudentT


def _run(task: Task) -> Fit:
    freedom = checks.positive(task, "student", "freedom")
    natural = checks.choice(task, "student", "scale", ("matched", "natural")) == "natural"
    start = warm_up(task)
    scale = max(robust_deviation(start.misfits), start.floor)
    # Near zero the likelihood is a square; matched, that square counts as least squares does.
    unit = 1.0 if natural else 2 * freedom * scale**2 / (freedom + 1)
    penalty = StudentT(freedom, floor=start.floor, unit=unit)
    fit = go_on(task, start, penalty, {"log_scale": math.log(scale)})
    found = float(np.hypot(np.exp(np.asarray(fit.model.extras["log_scale"])), start.floor))
    return fit.with_details(freedom=freedom, level=start.natural(found), unit=unit)


STUDENT = register(
    Method(
        "student",
        "Student's t likelihood with a learned scale",
        _run,
        options={"freedom": 3.0, "scale": "matched"},
    )
)
