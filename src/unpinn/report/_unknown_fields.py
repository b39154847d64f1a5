"""Unknown fields in a few numbers: how small and how large they are, where, and how surely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpinn.report._facts import Interval, number, unit_of
from unpinn.report._field_grids import grid_points
from unpinn.report._intervals import bands_of
from unpinn.training import Fit


@dataclass(frozen=True)
class Extreme:
    """The smallest or largest value of an unknown field, with what the baseline has there.

    Arguments:
        field: its name.
        unit: its unit, "" where nobody said.
        which: "least" or "greatest".
        place: where, in words.
        value: the value.
        interval: of the field at that place, or None.
        before: the baseline's value there, or None without one.
        before_interval: of the baseline, or None.
    """

    field: str
    unit: str
    which: str
    place: str
    value: float
    interval: Interval | None
    before: float | None
    before_interval: Interval | None


def extremes_of(fit: Fit, level: float = 0.9) -> tuple[list[Extreme], str]:
    """Both extremes of every unknown field on the grid of its picture, and what intervals are."""
    names = [field.name for field in fit.problem.unknown_fields]
    if not names:
        return [], ""
    _, points = grid_points(fit)
    places = {}
    for name in names:
        values = fit.predict(points, name)
        places[name] = points[[values.argmin(), values.argmax()]]
    bands, told = bands_of(fit, places, level)
    before = None if fit.status.code == "kept" else fit.before
    earlier = {} if before is None else bands_of(before, places, level)[0]
    rows = []
    for name in names:
        found = fit.predict(places[name], name)
        was = None if before is None else before.predict(places[name], name)
        for end, which in enumerate(("least", "greatest")):
            rows.append(Extreme(
                name, unit_of(fit.problem, name), which, _place(fit, places[name][end]),
                float(found[end]), bands[name][end] if name in bands else None,
                None if was is None else float(was[end]),
                earlier[name][end] if name in earlier else None,
            ))  # fmt: skip
    return rows, told


def _place(fit: Fit, point: np.ndarray) -> str:
    """A point in words."""
    return ", ".join(
        f"{name} = {number(float(value), 3)} {unit_of(fit.problem, name)}".strip()
        for name, value in zip(fit.problem.coordinates, point, strict=True)
    )
