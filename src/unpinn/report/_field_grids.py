"""Fields on regular grids, as pictures and files show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unpinn.training import Fit

_LINE_POINTS = 240
# The longer side of a picture, in points, with and without a coordinate to step through.
_SIDE, _SIDE_OF_FRAMES = 120, 72
_FRAMES = 12
_MOST_QUANTITIES = 8


@dataclass(frozen=True, eq=False)
class FieldGrid:
    """One quantity on a grid of two coordinates (or one), perhaps stepped through a third.

    Arguments:
        name: the quantity.
        across: name and places of the first coordinate.
        up: name and places of the second, or None.
        frames: name and places of the coordinate that is stepped through, or None.
        fixed: what further coordinates are held at.
        values: (frames, up, across); (1, 1, across) with one coordinate.
    """

    name: str
    across: tuple[str, np.ndarray]
    up: tuple[str, np.ndarray] | None
    frames: tuple[str, np.ndarray] | None
    fixed: Mapping[str, float]
    values: np.ndarray


def quantities_of(fit: Fit) -> tuple[str, ...]:
    """What is worth showing: fields, unknown fields, and what else was measured."""
    seen = () if fit.observations is None else fit.observations.quantities
    return tuple(dict.fromkeys((*fit.problem.columns, *seen)))[:_MOST_QUANTITIES]


def axes_of(fit: Fit) -> tuple[str, str | None, str | None, tuple[str, ...]]:
    """Which coordinate runs across, which up, which is stepped through, and which are held.

    Time runs across where there is one coordinate of space beside it, and is stepped through
    where there are more.
    """
    names = list(fit.problem.coordinates)
    time = fit.problem.time
    space = list(fit.problem.space)
    if len(names) == 1:
        return names[0], None, None, ()
    if len(space) < 2 and time is not None:
        return time, space[0], None, ()
    rest = space[2:] + ([time] if time is not None else [])
    stepped = time if time is not None else (rest[0] if rest else None)
    return space[0], space[1], stepped, tuple(n for n in rest if n != stepped)


def grid_points(fit: Fit) -> tuple[FieldGrid, np.ndarray]:
    """An empty grid fit for pictures, and its points, (n, dimensions)."""
    across, up, stepped, held = axes_of(fit)
    box = fit.problem.coordinates
    side = _SIDE if stepped is None else _SIDE_OF_FRAMES
    fixed = {name: float(np.mean(box[name])) for name in held}
    if up is None:
        shape = (1, 1, _LINE_POINTS)
    else:
        shape = (1 if stepped is None else _FRAMES, *_shape(fit, across, up, side))
    places = {across: _places(box[across], shape[2])}
    if up is not None:
        places[up] = _places(box[up], shape[1])
    if stepped is not None:
        places[stepped] = _places(box[stepped], shape[0])
    columns = []
    for name in box:
        if name in fixed:
            columns.append(np.full(shape, fixed[name]))
            continue
        axis = {stepped: 0, up: 1, across: 2}[name]
        along = places[name].reshape([-1 if k == axis else 1 for k in range(3)])
        columns.append(np.broadcast_to(along, shape))
    points = np.stack([column.ravel() for column in columns], axis=1)
    grid = FieldGrid(
        "", (across, places[across]), None if up is None else (up, places[up]),
        None if stepped is None else (stepped, places[stepped]), fixed, np.empty(shape),
    )  # fmt: skip
    return grid, points


def field_grids(fit: Fit, names: tuple[str, ...] | None = None) -> list[FieldGrid]:
    """Every quantity worth showing, on one grid."""
    from dataclasses import replace

    empty, points = grid_points(fit)
    chosen = quantities_of(fit) if names is None else names
    columns = [name for name in chosen if name in fit.problem.columns]
    known = fit.predict(points) if columns else {}
    found = []
    for name in chosen:
        values = known[name] if name in known else fit.predict(points, name)
        found.append(replace(empty, name=name, values=values.reshape(empty.values.shape)))
    return found


def _places(ends, count: int) -> np.ndarray:
    low, high = ends
    return np.linspace(low, high, count) if count > 1 else np.array([(low + high) / 2])


def _shape(fit: Fit, across: str, up: str, side: int) -> tuple[int, int]:
    """Points up and across; lengths are compared only where both are of space."""
    if fit.problem.time in (across, up):
        return round(side * 0.75), side
    low, high = fit.problem.coordinates[across]
    bottom, top = fit.problem.coordinates[up]
    ratio = (top - bottom) / (high - low)
    if not 0.1 < ratio < 10:
        return round(side * 0.75), side
    return (round(side * ratio), side) if ratio <= 1 else (side, round(side / ratio))
