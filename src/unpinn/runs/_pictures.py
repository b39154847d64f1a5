"""The pictures of a run: from fits to plain arrays, which `unpinn.report` draws."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unpinn._files import write_bytes
from unpinn.runs._posed import Posed
from unpinn.training import Fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What the literature calls these methods.
_KNOWN_AS = {"pinn": "PINN", "ppinn": "P-PINN", "dpinn": "D-PINN", "bpinn": "B-PINN"}
# A picture needs no finer grid than this along a coordinate.
_MOST = 200
_WARNING = "#b00020"


def write_pictures(directory: Path, fits: dict[str, Fit], posed: Posed) -> list[Path]:
    """Draw everything that there is to draw, as PNG files.

    Arguments:
        directory: where.
        fits: by what each is called, the baseline first and the result last.
        posed: what was asked, with the truth where it is known.
    """
    written = []
    for name, figure in _figures(fits, posed):
        if name != "readings":
            _warn(figure, fits)
        path = directory / f"{name}.png"
        _write(path, figure)
        written.append(path)
    return written


def write_comparison(path: Path, fits: dict[str, Fit], posed: Posed) -> None:
    """The headline field, or else the first, by several methods, where the truth is known."""
    bench = posed.benchmark
    if bench is None:
        return
    name = bench.headline.of[0]
    figure = _fields(fits, posed, name if name in bench.exact else posed.problem.fields[0])
    _warn(figure, fits)
    _write(path, figure)


def _warn(figure: Figure, fits: dict[str, Fit]) -> None:
    """Say in the picture itself what must not be believed: pictures travel without their pages."""
    bad = [f"{_KNOWN_AS.get(n, n)} {f.status.code}" for n, f in fits.items() if not f.status.good]
    if bad:
        told = f"{', '.join(bad)}: what is shown of it is no answer"
        figure.supxlabel(told, color=_WARNING, fontsize=9)


def _write(path: Path, figure: Figure) -> None:
    buffer = io.BytesIO()
    # Without the version of the drawing library, the same run gives the same bytes.
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def _figures(fits: dict[str, Fit], posed: Posed) -> Iterator[tuple[str, Figure]]:
    if posed.benchmark is not None:
        for name in posed.problem.columns:
            yield name, _fields(fits, posed, name)
            if posed.problem.dimension == 3:
                yield f"{name}-in-time", _slices(list(fits.values())[-1], posed, name)
            elif posed.problem.time is not None and posed.problem.dimension == 2:
                yield f"{name}-in-time", _profiles(fits, posed, name)
    yield from _readings(list(fits.values())[-1], posed)
    drawn: list[Fit] = []
    for label, fit in fits.items():
        # Where the baseline was kept, its history is the result's as well.
        if not any(np.array_equal(fit.history.rows, d.history.rows, equal_nan=True) for d in drawn):
            drawn.append(fit)
            yield from _histories(label, fit, posed)


def _fields(fits: dict[str, Fit], posed: Posed, name: str) -> Figure:
    """One field by every method; of three coordinates, at the middle of the last."""
    from unpinn.report._pictures import comparison

    axes = tuple(posed.problem.coordinates)
    points, exact, shape = _grid(posed, name)
    if len(axes) == 3:
        middle = points.reshape(*shape, 3)[:, :, shape[2] // 2].reshape(-1, 3)
        exact = exact.reshape(shape)[:, :, shape[2] // 2].ravel()
        found = _by_method(fits, posed, name, middle)
        return comparison(
            middle[:, :2], exact, found, axes=axes[:2], shape=shape[:2],
            name=f"{name} at {axes[2]} = {middle[0, 2]:.3g}",
        )  # fmt: skip
    found = _by_method(fits, posed, name, points)
    return comparison(points, exact, found, axes=axes, shape=shape, name=name)


def _profiles(fits: dict[str, Fit], posed: Posed, name: str) -> Figure:
    from unpinn.report._profiles import time_profiles

    points, exact, shape = _grid(posed, name)
    found = _by_method(fits, posed, name, points)
    axes = tuple(posed.problem.coordinates)
    return time_profiles(points, exact, found, axes=axes, shape=shape, name=name)


def _slices(fit: Fit, posed: Posed, name: str) -> Figure:
    from unpinn.report._pictures import time_slices

    points, exact, shape = _grid(posed, name)
    found = _predicted(fit, posed, name, points)
    axes = tuple(posed.problem.coordinates)
    return time_slices(points, exact, found, axes=axes, shape=shape, name=name)


def _grid(posed: Posed, name: str) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """The test grid, or a coarser one, and the exact field on it."""
    from unpinn.problem import Grid

    assert posed.benchmark is not None
    shape = tuple(min(count, _MOST) for count in posed.benchmark.test_grid.counts)
    points = Grid(*shape).draw(posed.problem.coordinates)
    return points, posed.benchmark.truth(points)[name], shape


def _by_method(
    fits: dict[str, Fit], posed: Posed, name: str, points: np.ndarray
) -> dict[str, np.ndarray]:
    return {
        _KNOWN_AS.get(label, label): _predicted(fit, posed, name, points)
        for label, fit in fits.items()
    }


def _predicted(fit: Fit, posed: Posed, name: str, points: np.ndarray) -> np.ndarray:
    values = fit.predict(points, name)
    bench = posed.benchmark
    shifted = bench is not None and any(
        quantity.shifted and quantity.of == (name,)
        for quantity in (bench.headline, bench.state, *bench.beside)
    )
    if not shifted or bench is None:
        return values
    # Known up to a constant only: drawn with the truth's mean.
    return values - values.mean() + bench.truth(points)[name].mean()


def _readings(fit: Fit, posed: Posed) -> Iterator[tuple[str, Figure]]:
    from unpinn.report._pictures import partition_map, reading_layout

    axes = tuple(posed.problem.coordinates)
    domain = tuple(posed.problem.coordinates.values())
    points = posed.observations.points
    truth = posed.readings
    if len(axes) not in (2, 3):
        return
    if truth is not None:
        figure = reading_layout(points, truth.sigma_true, truth.is_bad, axes=axes, domain=domain)
        yield "readings", figure
    if fit.partition is not None:
        yield (
            "suspects",
            partition_map(
                points, fit.partition.suspect, axes=axes, domain=domain,
                is_bad=None if truth is None else truth.is_bad,
                score=fit.partition.score,
            ),
        )  # fmt: skip


def _histories(label: str, fit: Fit, posed: Posed) -> Iterator[tuple[str, Figure]]:
    from unpinn.report._pictures import loss_history, unknown_trajectories

    history = fit.history
    if not len(history):
        return
    scalars = [scalar.name for scalar in posed.problem.scalars]
    terms = [name for name in history.names if name not in scalars]
    counted: dict[str, int] = {}
    for number, (kind, start) in enumerate(history.stages):
        counted[f"{number + 1} {kind}"] = start
    # A run that diverged ends with numbers that no scale can show.
    finite = np.where(np.isfinite(history.rows), history.rows, np.nan)
    rows = finite[:, [history.names.index(name) for name in terms]]
    yield f"loss-{label}", loss_history(terms, rows, stages=counted)
    if scalars:
        rows = finite[:, [history.names.index(name) for name in scalars]]
        truth = None if posed.benchmark is None else dict(posed.benchmark.true_scalars)
        figure = unknown_trajectories(scalars, rows, truth=truth, stages=counted)
        yield f"unknowns-{label}", figure
