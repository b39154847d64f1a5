"""What can be seen of a model's quality without knowing the truth, before and after."""

from __future__ import annotations

import numpy as np

from unpinn._errors import UserError
from unpinn.adapters._records import Snapshot
from unpinn.unlearning import Evidence, fit_mixture, log_densities

# A model that is no better than a constant may still be right about a share of the readings,
# where the others lie far off to one side; then its smallest misfits are much smaller.
_BEST_QUARTER = 0.5


def check_trained(misfits: np.ndarray, values: np.ndarray) -> None:
    """Refuse a model that tells the readings no better than a constant would."""
    constant = values - np.nanmedian(values, axis=0)
    centred = values - np.nanmean(values, axis=0)
    if np.nansum(misfits**2) < np.nansum(centred**2):
        return
    mine, theirs = (np.nanquantile(np.abs(part), 0.25) for part in (misfits, constant))
    if not mine < _BEST_QUARTER * theirs:
        raise UserError(
            "the model explains the readings no better than a constant does, so it cannot tell "
            "good from bad ones; train it first, or pass untrained=True if it is as it should be"
        )


def is_finite(shot: Snapshot, values: np.ndarray) -> bool:
    """Whether a model gives numbers wherever something was read."""
    seen = np.isfinite(values)
    return bool(np.isfinite(shot.residuals).all() and np.isfinite(shot.misfits[seen]).all())


def compare_snapshots(before: Snapshot, after: Snapshot) -> Evidence:
    """How likely the readings are under each one's own noise, and how well the equations hold.

    A model that gives no numbers any more is worse than any that does.
    """
    if not is_finite(after, before.misfits):
        lost, count = float("-inf"), len(before.misfits)
        return Evidence(lost, 0.0, before.fresh_residual, float("inf"), False, count)
    first, second = (
        log_densities(s.misfits, fit_mixture(s.misfits).noise) for s in (before, after)
    )
    return Evidence.of(first, second, (before.fresh_residual, after.fresh_residual))
