"""trimmed: least trimmed squares, the mean of the smaller half of the squared misfits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unpinn.rivals import _checks as checks
from unpinn.rivals._judged import partition_of
from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._working import working_misfits
from unpinn.training import Fit, Trimmed, train


def _run(task: Task) -> Fit:
    share = checks.share(task, "trimmed", "share", one=True)
    fit = train(
        task.problem, task.observations, task.protocol, task.seed, penalty=Trimmed(share),
        directory=task.place("trimmed"), watcher=task.watcher,
    )  # fmt: skip
    present = task.observations.present
    sizes = np.where(present, np.abs(working_misfits(fit)), 0.0)
    worst, known = sizes.max(axis=1), np.sort(sizes[present])
    bound = known[max(int(np.ceil(share * len(known))) - 1, 0)]
    rule = f"among the {share:.0%} with the smallest misfit"
    return replace(fit, partition=partition_of(fit, worst <= bound, rule))


TRIMMED = register(
    Method("trimmed", "least trimmed squares", _run, options={"share": 0.5}),
)
