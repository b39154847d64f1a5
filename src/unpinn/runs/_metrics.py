"""One flat record a method: what tables, comparisons and studies are made from."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn._files import plain
from unpinn.evaluation import Detection, detection
from unpinn.runs._posed import Posed
from unpinn.training import Fit, NoiseEstimate

_NOISE = tuple(f.name for f in fields(NoiseEstimate) if f.name != "factors")


def metrics_record(fit: Fit, posed: Posed) -> dict[str, Any]:
    """What a fit achieved, in JSON's types; what cannot be known is None.

    `l2re` is the relative error of the problem's headline quantity and `state_l2re` that of the
    reconstructed fields, where the exact solution is known. `seconds` is the method's own time,
    `seconds_in_all` includes the baseline that it started from.

    Arguments:
        fit: the result.
        posed: what was asked.
    """
    asked = posed.configuration
    own = float(fit.seconds.get("total", 0.0))
    before = 0.0 if fit.before is None else float(fit.before.seconds.get("total", 0.0))
    kept = fit.status.code == "kept"
    record: dict[str, Any] = {
        "problem": posed.problem.name,
        "noise": asked.noise_name,
        "method": fit.method,
        "recipe": fit.recipe,
        "protocol": asked.protocol,
        "preset": None if asked.is_file else asked.preset,
        "seed": fit.seed,
        "budget": asked.budget if asked.epochs is None else f"{asked.epochs} epochs",
        "options": dict(asked.options),
        "quantity": None,
        "l2re": None,
        "state_l2re": None,
        "unknowns": dict(fit.unknowns),
        "seconds": own,
        "seconds_in_all": own if kept else own + before,
        "neurons_left": fit.neurons_left,
        "status": fit.status.code,
        "reason": fit.status.reason,
        "detection_auc": None,
        "residual": _residual_size(fit, posed),
        "misfit": float(np.sqrt(np.nanmean(fit.misfits() ** 2))),
    }
    record |= _noise(fit) | _judged(fit, posed) | _detected(fit, posed)
    return plain(record)


# What must be in a record, of which kind; None always may be instead.
_NUMBERS = (
    "l2re", "state_l2re", "seconds", "seconds_in_all", "neurons_left", "misfit", "residual",
    "detection_auc", "suspects",
)  # fmt: skip
_TEXTS = ("problem", "method", "quantity", "status", "reason")
_MAPPINGS = ("unknowns", "estimated_noise", "options")
_NEEDED = ("method", "status", "seconds", "unknowns")
_JUDGED = ("precision", "recall", "truly_bad")


def check_records(content: Any, path: Path, whole: bool = False) -> list[dict[str, Any]]:
    """Records as they were read from a file, refused where they are not what was written there.

    Arguments:
        content: of the file.
        path: of the file.
        whole: whether nothing may be missing that commands print.
    """

    def number(value: Any) -> bool:
        return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))

    def sound(record: Any) -> bool:
        if not isinstance(record, dict) or any(record.get(name) is None for name in _NEEDED):
            return False
        judged = _JUDGED if record.get("truly_bad") is not None else ()
        if whole and not {*_NUMBERS, *_TEXTS, *_MAPPINGS, *judged} <= {*record}:
            return False
        noise = record.get("estimated_noise") or dict.fromkeys(_NOISE)
        errors = record.get("unknown_errors") or {}
        return (
            all(number(record.get(name)) for name in (*_NUMBERS, *_JUDGED))
            and all(isinstance(record.get(name, ""), str | None) for name in _TEXTS)
            and all(isinstance(record.get(name), dict | None) for name in _MAPPINGS)
            and all(number(value) for value in record["unknowns"].values())
            and {*_NOISE} <= {*noise} and all(number(v) for v in noise.values())
            and isinstance(errors, dict)
            and all(isinstance(e, dict) and e.get("truth") is not None for e in errors.values())
            and all(number(value) for e in errors.values() for value in e.values())
        )  # fmt: skip

    if not (isinstance(content, list) and content and all(sound(record) for record in content)):
        raise UserError(
            f"{path} does not hold the records of a run; it may be damaged, so restore it or run "
            "anew with --force"
        )
    return content


def suspicion(fit: Fit) -> np.ndarray:
    """How suspect each reading is: what its partition went by, or else its misfit, (N,)."""
    if fit.partition is None:
        return np.sqrt(np.nansum(fit.misfits() ** 2, axis=1))
    by_mixture = fit.partition.posterior is not None
    return fit.partition.misfit if by_mixture else fit.partition.score


def detected(fit: Fit, posed: Posed) -> Detection | None:
    """How well bad readings were told from good ones, where the truth is known."""
    if posed.readings is None:
        return None
    score = suspicion(fit)
    suspect = None if fit.partition is None else fit.partition.suspect
    sound = bool(np.isfinite(score).all())
    if not sound and suspect is None:
        return None
    return detection(score if sound else None, posed.readings.is_bad, suspect)


def _residual_size(fit: Fit, posed: Posed) -> float:
    """Root mean square of the equations' residuals at the readings, in the user's units."""
    return float(np.sqrt(np.mean(fit.residual(posed.observations.points) ** 2)))


def _noise(fit: Fit) -> dict[str, Any]:
    if fit.partition is None:
        return {"suspects": None, "estimated_noise": None}
    noise = fit.partition.noise
    return {
        "suspects": int(fit.partition.suspect.sum()),
        "estimated_noise": None if noise is None else {n: getattr(noise, n) for n in _NOISE},
    }


def _judged(fit: Fit, posed: Posed) -> dict[str, Any]:
    if posed.benchmark is None:
        return {}
    judged = posed.benchmark.evaluate(fit)
    return {
        "quantity": judged["quantity"],
        "l2re": judged["l2re"],
        "state_l2re": judged["state_l2re"],
        "headline": judged["headline"],
        "fields": judged["fields"],
        "unknown_errors": judged["unknowns"],
    }


def _detected(fit: Fit, posed: Posed) -> dict[str, Any]:
    found = detected(fit, posed)
    if found is None:
        return {}
    return {
        "detection_auc": found.auc,
        "precision": found.precision,
        "recall": found.recall,
        "truly_bad": found.bad,
    }
