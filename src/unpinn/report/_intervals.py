"""Intervals on the unknown numbers, where there is a way to have them."""

from __future__ import annotations

import numpy as np

from unpinn.report._facts import Interval
from unpinn.training import Fit


def intervals_of(fit: Fit, level: float = 0.9) -> tuple[dict[str, Interval], str]:
    """Each unknown number's interval, and in words how it was made (or why there is none)."""
    if not fit.problem.scalars or fit.status.code in ("failed", "diverged"):
        return {}, ""
    if fit.members is not None:
        ends = ((1 - level) / 2, (1 + level) / 2)
        count = len(next(iter(fit.unknown_samples.values())))
        found = {
            name: (float(np.quantile(values, ends[0])), float(np.quantile(values, ends[1])))
            for name, values in fit.unknown_samples.items()
        }
        return found, f"{level:.0%} intervals from {count} members"
    return {}, ""
