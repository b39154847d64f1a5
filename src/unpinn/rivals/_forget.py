"""Forget quality of fits: the unlearned one beside the one that never saw the suspects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.evaluation import Evidence, ForgetQuality, forget_quality
from unpinn.problem import Observations
from unpinn.training import Fit


def forgetting(
    unlearned: Fit, retrained: Fit, points: Any, fresh: Observations | None = None
) -> ForgetQuality:
    """How thoroughly a fit has forgotten the readings that another never saw.

    Arguments:
        unlearned: the fit to judge: ppinn, ft, or any other on the same readings.
        retrained: the yardstick, from `rt`: its partition says who the suspects are.
        points: where predictions are compared, (n, dimensions).
        fresh: readings that neither fit has seen, at the suspects' points with the suspects'
            noise (see `redrawn`); without them membership is not tested.
    """
    if retrained.partition is None or not retrained.partition.suspect.any():
        raise UserError("the retrained fit left out no reading, so there is nothing to forget")
    if unlearned.observations is None or retrained.observations is None:
        raise UserError("both fits need their readings")
    if unlearned.observations.fingerprint != retrained.observations.fingerprint:
        raise UserError("the two fits were trained on different readings; compare fits of the same")
    suspects = retrained.observations.take(retrained.partition.suspect)
    return forget_quality(
        *(_evidence(fit, points, suspects, fresh) for fit in (unlearned, retrained))
    )


def redrawn(observations: Observations, clean: np.ndarray, sigma: Any, seed: int) -> Observations:
    """The same readings with errors drawn anew, for a membership test.

    Arguments:
        observations: the readings, at most the suspects.
        clean: what they would have been without errors, (N, quantities).
        sigma: the level of each one's error, (N,).
        seed: of the draw; another than the readings' own.
    """
    draw = np.random.default_rng(seed).standard_normal(np.shape(clean))
    values = clean + np.asarray(sigma, np.float64)[:, None] * draw
    return replace(observations, values=np.where(observations.present, values, np.nan))


def _evidence(fit: Fit, points: Any, suspects: Observations, fresh: Observations | None):
    predicted = fit.predict(points)
    return Evidence(
        np.concatenate([predicted[name] for name in fit.problem.columns]),
        _magnitudes(fit, suspects),
        None if fresh is None else _magnitudes(fit, fresh),
        dict(fit.unknowns),
    )


def _magnitudes(fit: Fit, observations: Observations) -> np.ndarray:
    return np.sqrt(np.nansum(fit.misfits(observations) ** 2, axis=1))
