"""What a reader of a result must know before believing it, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unpinn.problem import Sobol
from unpinn.report._facts import Interval, number, with_unit
from unpinn.report._suspects import sensor_sentences
from unpinn.training import Fit

# Readings that reach over less of a coordinate than this leave room for extrapolation.
_REACH = 0.85
# A residual of this share of its equation's size is no solution.
_LARGE_RESIDUAL = 0.1
# A loss that still falls by this share over the last tenth of the epochs has not settled.
_FALLING = 0.15
# An unknown number that moved by this share of its interval's width over the last fifth of the
# epochs has not come to rest.
_MOVED = 0.25
_FRESH_POINTS, _FRESH_SEED = 512, 4_211


@dataclass(frozen=True)
class Notice:
    """One thing to know.

    Arguments:
        severity: "serious" where numbers may be wrong, "caution" where they need care, "note".
        text: a sentence or two.
    """

    severity: Literal["serious", "caution", "note"]
    text: str


def warnings_of(fit: Fit, intervals: Mapping[str, Interval] | None = None) -> list[Notice]:
    """Everything to know about a fit, the serious first.

    Arguments:
        fit: any fit.
        intervals: on its unknown numbers, where there are any: they are held against how much the
            numbers still moved.
    """
    found = [
        *_status(fit),
        *_bounds(fit),
        *_partition(fit),
        *_pruning(fit),
        *_reach(fit),
        *_unseen(fit),
        *_residual(fit),
        *_settled(fit),
        *_moving(fit, intervals or {}),
        *_rows(fit),
    ]
    order = {"serious": 0, "caution": 1, "note": 2}
    return sorted(found, key=lambda warning: order[warning.severity])


def _status(fit: Fit) -> list[Notice]:
    code, reason = fit.status.code, fit.status.reason
    if code == "diverged":
        told = f"Training diverged ({reason}). The last good state is shown; do not trust it."
        return [Notice("serious", told)]
    if code == "failed":
        return [Notice("serious", f"The method failed: {reason}. Its numbers are no answer.")]
    if code == "kept":
        return [
            Notice(
                "caution",
                "Unlearning did not help by the evidence at hand, so the numbers and fields are "
                "those of the plain network trained on all readings. The list of suspects stands.",
            )
        ]
    return []


def _bounds(fit: Fit) -> list[Notice]:
    names = [s.name for s in fit.problem.scalars if s.at_bound(fit.unknowns[s.name])]
    return [
        Notice(
            "serious",
            f"{name} ended at a bound of its range, so the bound and not the readings decided the "
            "value; widen the bounds, start elsewhere, or train longer.",
        )
        for name in names
    ]


def _partition(fit: Fit) -> list[Notice]:
    partition = fit.partition
    if partition is None:
        return []
    found = []
    if partition.noise is not None and partition.noise.components == 1:
        found.append(
            Notice(
                "note",
                "One kind of error explains all misfits, so no reading was found suspect and "
                "nothing was unlearned.",
            )
        )
    suspect = float(np.mean(partition.suspect))
    if suspect > 0.5:
        found.append(
            Notice(
                "caution",
                f"{suspect:.0%} of the readings are suspect. Where the bad outnumber the good, the "
                "two can be mistaken for each other: check a few of them by hand.",
            )
        )
    found += [Notice("note", f"Sensor {told}.") for told in sensor_sentences(fit)]
    return found


def _pruning(fit: Fit) -> list[Notice]:
    if fit.pruning is None or not fit.pruning.note:
        return []
    return [Notice("caution", f"While pruning: {fit.pruning.note}.")]


def _reach(fit: Fit) -> list[Notice]:
    if fit.observations is None:
        return []
    found = []
    for column, (name, (low, high)) in enumerate(fit.problem.coordinates.items()):
        first = float(fit.observations.points[:, column].min())
        last = float(fit.observations.points[:, column].max())
        if (last - first) < _REACH * (high - low):
            found.append(
                Notice(
                    "note",
                    f"The readings reach from {number(first)} to {number(last)} in "
                    f"{with_unit(fit.problem, name)}, the domain from {number(low)} to "
                    f"{number(high)}. Beyond the readings the fields are extrapolated by the "
                    "equations alone.",
                )
            )
    return found


def _unseen(fit: Fit) -> list[Notice]:
    problem = fit.problem
    measured = () if fit.observations is None else fit.observations.quantities
    read = [problem.measured_expressions[name] for name in measured]
    known = (*problem.equation_expressions, *problem.condition_expressions, *read)
    levels = {d.field for e in known for d in e.derivatives if d.order == 0}
    found = []
    for name in problem.fields:
        if name not in levels:
            found.append(
                Notice(
                    "note",
                    f"Only derivatives of {name} appear in the equations, conditions and readings, "
                    f"so {name} is known up to a constant at best: its level means nothing.",
                )
            )
    return found


def _residual(fit: Fit) -> list[Notice]:
    scales = fit.details.get("scales", {})
    if not scales:
        return []
    points = Sobol(_FRESH_POINTS).draw(fit.problem.coordinates, _FRESH_SEED)
    sizes = [
        np.full(e.components, scales.get(e.name, 1.0)) for e in fit.problem.equation_expressions
    ]
    size = float(np.sqrt(np.mean((fit.residual(points) / np.concatenate(sizes)) ** 2)))
    if np.isfinite(size) and size <= _LARGE_RESIDUAL:
        return []
    return [
        Notice(
            "serious",
            f"The equations do not hold: away from where they were enforced their residual is "
            f"{size:.0%} of their own size. Train longer, or check the equations and units.",
        )
    ]


def _settled(fit: Fit) -> list[Notice]:
    if not len(fit.history) or not fit.history.stages or fit.status.code != "finished":
        return []
    total = fit.history["total"][fit.history.stages[-1][1] :]
    tail = max(5, len(total) // 20)
    if len(total) < 4 * tail:
        return []
    last, earlier = np.median(total[-tail:]), np.median(total[-3 * tail : -2 * tail])
    if not earlier > 0 or last > (1 - _FALLING) * earlier:
        return []
    return [
        Notice(
            "caution",
            "The loss was still falling when training ended; more epochs would change the numbers.",
        )
    ]


def _moving(fit: Fit, intervals: Mapping[str, Interval]) -> list[Notice]:
    """Intervals tell what the readings leave open, not what training has left undone."""
    last = len(fit.history) // 5
    if last < 5 or fit.status.code != "finished":
        return []
    found = []
    for name, (low, high) in intervals.items():
        course = fit.history[name]
        moved = abs(float(course[-1] - course[-1 - last]))
        if moved > _MOVED * (high - low) > 0:
            found.append(Notice(
                "caution",
                f"{with_unit(fit.problem, name)} had not come to rest: over the last fifth of the "
                f"epochs it moved by {number(moved, 2)}, {moved / (high - low):.0%} of its "
                "interval's width, which knows nothing of that. Train longer.",
            ))  # fmt: skip
    return found


def _rows(fit: Fit) -> list[Notice]:
    reading = fit.details.get("reading")
    if not isinstance(reading, dict):
        return []
    lost = sum(int(entry["count"]) for entry in reading.get("dropped", []))
    if not lost:
        return []
    return [
        Notice(
            "note",
            f"{lost:,} of {int(reading['rows']):,} rows of {reading['source']} were left out; the "
            "reasons are listed under the readings.",
        )
    ]
