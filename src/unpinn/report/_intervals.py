"""Intervals on the unknown numbers, where there is a way to have them."""

from __future__ import annotations

import numpy as np

from unpinn.report._facts import Interval
from unpinn.training import Fit


def intervals_of(fit: Fit, level: float = 0.9) -> tuple[dict[str, Interval], str]:
    """Each unknown number's interval, and in words how it was made (or why there is none)."""
    if not fit.problem.scalars or fit.status.code in ("failed", "diverged"):
        return {}, ""
    if fit.observations is None:
        return {}, "No intervals, since there are no readings"
    from unpinn.rivals import intervals
    from unpinn.rivals._linearised import within_reach

    if fit.members is not None:
        found = intervals(fit, "members", level)
        told = f"{level:.0%} intervals from the spread of {found.details['members']} members"
    elif within_reach(fit):
        found = intervals(fit, "linearised", level)
        told = f"{level:.0%} intervals from the curvature of the loss, which know of no bias"
    else:
        found = intervals(fit, "laplace", level)
        told = (
            f"{level:.0%} intervals from the curvature of the loss in the last layer, which know "
            "of no bias and are narrow"
        )
    sound = {
        name: (low, high)
        for name, (low, high) in found.unknowns.items()
        if np.isfinite([low, high]).all()
    }
    return sound, told if sound else "No intervals: the loss has no curvature here"
