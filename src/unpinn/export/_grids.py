"""Regular grids over a problem's whole domain, and the fields on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unpinn._errors import UserError
from unpinn.training import Fit

# More points than this are a mistake in the counts rather than a wish.
_MOST_POINTS = 50_000_000


def full_grid(
    fit: Fit, counts: Mapping[str, int] | int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Places along every coordinate, and the points of the grid in the order of the coordinates."""
    names = list(fit.problem.coordinates)
    if isinstance(counts, int):
        counts = dict.fromkeys(names, counts)
    unknown = [name for name in counts if name not in names]
    missing = [name for name in names if name not in counts]
    if unknown or missing:
        raise UserError(
            f"a grid needs a count for each of {', '.join(names)}, not for {', '.join(counts)}"
        )
    if any(count < 1 for count in counts.values()):
        raise UserError("a grid needs one point or more along each coordinate")
    total = int(np.prod(list(counts.values()), dtype=np.float64))
    if total > _MOST_POINTS:
        raise UserError(
            f"a grid of {total:,} points is too large; take fewer along each coordinate"
        )
    places = {n: _places(fit.problem.coordinates[n], counts[n]) for n in names}
    mesh = np.meshgrid(*places.values(), indexing="ij")
    return places, np.stack([part.ravel() for part in mesh], axis=1)


def fields_on(
    fit: Fit, counts: Mapping[str, int] | int, what: Sequence[str] | str | None = None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Places along every coordinate, and each field arranged as the grid.

    Arguments:
        fit: a fit.
        counts: points along each coordinate, or one count for all.
        what: fields, derivatives such as "u.xx", or measurements; all fields unless told.
    """
    places, points = full_grid(fit, counts)
    shape = tuple(len(axis) for axis in places.values())
    names = fit.problem.columns if what is None else (what,) if isinstance(what, str) else what
    return places, {name: fit.predict(points, name).reshape(shape) for name in names}


def _places(ends: Sequence[float | int], count: int) -> np.ndarray:
    low, high = ends
    return np.linspace(low, high, count) if count > 1 else np.array([(low + high) / 2])
