"""A partition for a method that judges readings without the unlearning's rules."""

from __future__ import annotations

import numpy as np

from unpinn.training import Fit, NoiseEstimate, Partition
from unpinn.unlearning import scores_of


def partition_of(
    fit: Fit,
    retained: np.ndarray,
    rule: str,
    *,
    weight: np.ndarray | None = None,
    threshold: float = float("inf"),
    posterior: np.ndarray | None = None,
    noise: NoiseEstimate | None = None,
) -> Partition:
    """What a fit says about the readings, with the verdict passed in.

    Arguments:
        fit: whose misfits and residuals to keep beside the verdict.
        retained: the verdict, (N,) of bool.
        rule: how it was reached.
        weight: how much each reading counted, (N,); one for the retained unless told.
        threshold: the score from which on a reading is suspect.
        posterior: probability of being bad, (N,).
        noise: the estimated noise.
    """
    scores = scores_of(fit)
    weight = retained.astype(np.float64) if weight is None else weight
    return Partition(
        scores.misfit, scores.residual, scores.score, retained, weight, threshold, rule,
        posterior, noise,
    )  # fmt: skip
