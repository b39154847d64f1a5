"""What can be tabulated: a name for each number in a run's record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unpinn.study._source import Place, unknown

QUANTITIES: dict[str, tuple[str, str]] = {
    "l2re": ("l2re", "relative L² error"),
    "l1re": ("headline.l1re", "relative L¹ error"),
    "mse": ("headline.mse", "mean square error"),
    "max_error": ("headline.max_error", "largest absolute error"),
    "fmse_low": ("headline.fmse_low", "spectral error, low frequencies"),
    "fmse_mid": ("headline.fmse_mid", "spectral error, middle frequencies"),
    "fmse_high": ("headline.fmse_high", "spectral error, high frequencies"),
    "state_l2re": ("state_l2re", "relative L² error of the state"),
    "seconds": ("seconds", "seconds"),
    "seconds_in_all": ("seconds_in_all", "seconds with the baseline"),
    "neurons_left": ("neurons_left", "neurons left"),
    "detection_auc": ("detection_auc", "area under the curve of detection"),
    "precision": ("precision", "precision of the suspects"),
    "recall": ("recall", "recall of the suspects"),
    "suspects": ("suspects", "suspect readings"),
    "misfit": ("misfit", "misfit of all readings"),
    "residual": ("residual", "residual at the readings"),
}
"""For each name, its place in a record and what it is called."""

_GROUPS = (
    "fields", "unknowns", "unknown_errors", "headline", "estimated_noise", "intervals",
    "forgetting",
)  # fmt: skip
_WORDS = {
    "coverage": "share of 90 % intervals that hold the truth",
    "width_to_error": "mean width over mean error of 90 % intervals (4.1 where they are right)",
    "coverage_of_unknowns": "share of 90 % intervals of numbers that hold the truth",
    "distance": "distance of predictions from the retrained network's",
    "misfit_statistic": "largest gap to the retrained network's misfits on the suspects",
    "misfit_shift": "mean shift of misfits on the suspects, over the retrained network's",
    "membership": "chance to tell a suspect that was seen from a fresh reading (.5 is forgotten)",
    "membership_retrained": "the same for the retrained network",
}
# Of these, more is better.
_MORE = ("detection_auc", "precision", "recall")
# And these are neither good nor bad.
_NEITHER = ("neurons_left", "suspects", "misfit", "residual")


def check_quantity(name: str, place: Place) -> None:
    """Refuse a quantity that no record has."""
    group, dot, _ = name.partition(".")
    if name in QUANTITIES or (dot and group in _GROUPS):
        return
    known = [*QUANTITIES, *(f"{group}.NAME" for group in _GROUPS)]
    raise place.mistake(unknown("quantity", name, known), name)


def title_of(name: str) -> str:
    """What a quantity is called.

    >>> title_of("unknown_errors.b1.absolute")
    'absolute error of b1'
    """
    if name in QUANTITIES:
        return QUANTITIES[name][1]
    group, *parts = name.split(".")
    if group == "unknown_errors" and len(parts) == 2:
        return f"{parts[1]} error of {parts[0]}"
    if group == "fields" and len(parts) == 2:
        return f"{parts[1]} of {parts[0]}"
    if group == "intervals" and len(parts) == 2:
        return f"{_WORDS.get(parts[1], parts[1])}, {parts[0]}"
    if group == "forgetting" and len(parts) == 1:
        return _WORDS.get(parts[0], parts[0])
    return " ".join(parts)


def value_of(record: Mapping[str, Any], name: str) -> float | None:
    """A quantity in a record; None where it has none.

    >>> value_of({"headline": {"mse": 0.25}}, "mse")
    0.25
    """
    found: Any = record
    for part in QUANTITIES.get(name, (name, ""))[0].split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    number = isinstance(found, (int, float)) and not isinstance(found, bool)
    return float(found) if number else None


def better(name: str) -> int:
    """1 where more is better, -1 where less is, 0 where it is neither good nor bad."""
    group = name.partition(".")[0]
    if name in _NEITHER or group in ("unknowns", "estimated_noise", "intervals"):
        return 0
    # The nearer to a half, the better: neither more nor less is.
    if name.startswith("forgetting.membership"):
        return 0
    return 1 if name in _MORE else -1
