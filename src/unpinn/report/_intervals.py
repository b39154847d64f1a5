"""Intervals on unknown numbers and fields, where there is a way to have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpinn.report._facts import Interval
from unpinn.training import Fit


def intervals_of(fit: Fit, level: float = 0.9) -> tuple[dict[str, Interval], str]:
    """Each unknown number's interval, and in words how it was made (or why there is none)."""
    if not fit.problem.scalars or fit.status.code in ("failed", "diverged"):
        return {}, ""
    if fit.observations is None:
        return {}, "No intervals, since there are no readings"
    found, told = _uncertainty(fit, level)
    sound = {
        name: (low, high)
        for name, (low, high) in found.unknowns.items()
        if np.isfinite([low, high]).all()
    }
    return sound, told if sound else "No intervals: the loss has no curvature here"


def bands_of(
    fit: Fit, points: dict[str, np.ndarray], level: float = 0.9
) -> tuple[dict[str, list[Interval]], str]:
    """The band of every unknown field at points of its own, and in words how it was made.

    Arguments:
        fit: with unknown fields.
        points: of each field by name, (n, dimensions).
        level: of the band.
    """
    if fit.status.code in ("failed", "diverged") or fit.observations is None:
        return {}, ""
    found, told = _uncertainty(fit, level)
    bands = {name: found.band(places, name) for name, places in points.items()}
    return {
        name: [(float(low), float(high)) for low, high in zip(*ends, strict=True)]
        for name, ends in bands.items()
        if np.isfinite(ends).all()
    }, told


def _uncertainty(fit: Fit, level: float) -> tuple[Any, str]:
    """What knows the intervals, and in words how."""
    from unpinn.rivals import intervals
    from unpinn.rivals._linearised import within_reach

    if fit.members is not None:
        found = intervals(fit, "members", level)
        return found, f"{level:.0%} intervals from the spread of {found.details['members']} members"
    if within_reach(fit):
        found = intervals(fit, "linearised", level)
        return found, f"{level:.0%} intervals from the curvature of the loss, which know of no bias"
    told = (
        f"{level:.0%} intervals from the curvature of the loss in the last layer, which know "
        "of no bias and are narrow"
    )
    return intervals(fit, "laplace", level), told
