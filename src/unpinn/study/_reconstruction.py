"""The fields that a run found, on a grid fine enough for a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpinn.benchmarks import Benchmark
from unpinn.runs import Posed
from unpinn.study._sixteen import shortened
from unpinn.training import Fit

# A picture needs no more points along a coordinate.
_MOST = 100
# At which time a field of three coordinates is drawn, where the paper does; else in the middle.
_TIMES = {"nsinv": 1.0}


def reconstruction(fit: Fit, posed: Posed) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """All fields and coefficient fields, where there is an exact solution to draw beside them.

    Gives the arrays, flat and shortened, and what their grid is.
    """
    bench = posed.benchmark
    if bench is None or not all(np.isfinite(value) for value in fit.unknowns.values()):
        return None
    points, about = picture_grid(bench)
    found = fit.predict(points)
    return shortened({name: np.asarray(found[name]) for name in bench.exact}, about)


def picture_grid(bench: Benchmark) -> tuple[np.ndarray, dict[str, Any]]:
    """The points of a picture, the second coordinate fastest, and what describes them."""
    names = list(bench.problem.coordinates)
    ends = list(bench.problem.coordinates.values())
    counts = [min(count, _MOST) for count in bench.test_grid.counts[:2]]
    lines = [
        np.linspace(low, high, count) for (low, high), count in zip(ends, counts, strict=False)
    ]
    x, y = np.meshgrid(*lines, indexing="ij")
    columns = [x.ravel(), y.ravel()]
    about: dict[str, Any] = {"axes": names[:2], "shape": counts, "at": {}}
    for name, (low, high) in zip(names[2:], ends[2:], strict=True):
        about["at"][name] = _TIMES.get(bench.name, (low + high) / 2)
        columns.append(np.full(len(columns[0]), about["at"][name]))
    return np.stack(columns, axis=1), about
