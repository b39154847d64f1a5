"""mad: drop readings that lie far out by the robust deviation, and fit again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unpinn.rivals import _checks as checks
from unpinn.rivals._judged import partition_of
from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._working import robust_deviation, working_misfits
from unpinn.training import Fit, train


def _run(task: Task) -> Fit:
    cut = checks.positive(task, "mad", "cut")
    baseline = task.trained_baseline()
    retained = within(working_misfits(baseline), cut)
    fit = train(
        task.problem, task.observations, task.protocol, task.seed,
        weights=retained.astype(np.float64), directory=task.place("refit"), watcher=task.watcher,
    )  # fmt: skip
    rule = f"within {cut:g} robust deviations of the median misfit"
    partition = partition_of(baseline, retained, rule)
    return replace(fit, partition=partition, before=baseline)


def within(misfits: np.ndarray, cut: float) -> np.ndarray:
    """Which readings have every misfit within so many robust deviations of its median, (N,).

    >>> within(np.array([[0.1], [-0.1], [0.0], [9.0]]), 3.0).tolist()
    [True, True, True, False]
    """
    away = misfits - np.nanmedian(misfits, axis=0)
    deviations = np.array([robust_deviation(column) for column in away.T])
    far = np.abs(away) > cut * deviations
    # Where more than half of the misfits are alike there is no deviation to go by.
    return ~(far & (deviations > 0)).any(axis=1)


MAD = register(
    Method(
        "mad",
        "drop readings by the robust deviation of their misfit, and train anew",
        _run,
        options={"cut": 3.0},
        needs_baseline=True,
    )
)
