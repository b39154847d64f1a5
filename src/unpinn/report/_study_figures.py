"""The pictures of a study: reconstructed fields side by side, and errors along a setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unpinn.benchmarks import BENCHMARKS, Benchmark, benchmark
from unpinn.report import _panels as panels_of
from unpinn.report._pictures import comparison
from unpinn.study._plan import DRAWN, Entry, Plan, Table
from unpinn.study._printed import printed_numbers
from unpinn.study._quantities import title_of
from unpinn.study._reconstruction import picture_grid
from unpinn.study._store import Store
from unpinn.study._tables import Column, Value, columns_of, value_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = Mapping[str, Any]


def study_figures(
    plan: Plan, table: Table, records: Sequence[Record], store: Store
) -> Iterator[tuple[str, str, Figure]]:
    """A table's pictures: the name of each, its caption, and the figure."""
    own = [r for r in records if r["study"] == plan.name and r["table"] == table.name]
    if table.figure == "fields":
        yield from field_figures(table, own, store)
    elif table.figure == "curves":
        for quantity in table.quantities[:1]:
            figure = curves(table, own, quantity)
            if figure is not None:
                yield f"{table.name}-curves", f"{table.title}: {title_of(quantity)}", figure


# -- fields --------------------------------------------------------------------------------


def field_figures(
    table: Table, records: Sequence[Record], store: Store
) -> Iterator[tuple[str, str, Figure]]:
    """For each problem the exact field and what the first seed of the main methods found."""
    for problem in table.problems:
        if problem.name not in BENCHMARKS:
            continue
        seed = table.seeds[0]
        own = [
            r for r in records
            if r["problem"] == problem.label and r["seed"] == seed and r["method"] in DRAWN
        ]  # fmt: skip
        found = {str(r["column"]): store.fields(r["address"]) for r in own}
        kept = {label: fields for label, fields in found.items() if fields is not None}
        if not kept:
            continue
        bench = benchmark(problem.name, own[0]["preset"])
        for name in drawn_fields(bench):
            figure = _field_figure(bench, name, {k: arrays for k, (arrays, _) in kept.items()})
            if figure is not None:
                caption = f"{bench.title}: {name}, seed {seed}"
                yield f"{table.name}-{problem.label}-{name}", caption, figure


def drawn_fields(bench: Benchmark) -> tuple[str, ...]:
    """The fields that the problem is about: its headline, and what is judged beside it.

    >>> drawn_fields(benchmark("pinv")), drawn_fields(benchmark("stokes"))
    (('a',), ('u', 'v', 'p'))
    """
    headline = [name for name in bench.headline.of if name in bench.exact]
    beside = [name for quantity in bench.beside if quantity.shifted for name in quantity.of]
    names = [*(headline or bench.state.of), *beside]
    return tuple(dict.fromkeys(name for name in names if name in bench.exact))


def _field_figure(bench: Benchmark, name: str, found: Mapping[str, Mapping]) -> Figure | None:
    points, about = picture_grid(bench)
    exact = bench.truth(points)[name]
    shifted = any(
        quantity.shifted and name in quantity.of
        for quantity in (bench.headline, bench.state, *bench.beside)
    )
    predictions = {}
    for label, arrays in found.items():
        values = np.asarray(arrays.get(name, ()), np.float64)
        if values.size != exact.size or not np.isfinite(values).all():
            continue
        # Known up to a constant only: drawn with the truth's mean.
        predictions[label] = values - values.mean() + exact.mean() if shifted else values
    if not predictions:
        return None
    at = "".join(f" at {axis} = {place:.3g}" for axis, place in about["at"].items())
    return comparison(
        points[:, :2], exact, predictions, axes=about["axes"], shape=tuple(about["shape"]),
        name=f"{name}{at}",
    )  # fmt: skip


# -- curves --------------------------------------------------------------------------------


def curves(table: Table, records: Sequence[Record], quantity: str) -> Figure | None:
    """A panel for each problem, a line for each method, a band of one deviation around it.

    A method that the setting does not touch is a level line; hollow markers are printed numbers.
    """
    columns = columns_of(table, records)
    lines = {
        problem.label: _lines(table, records, problem, columns, quantity)
        for problem in table.problems
    }
    if not any(line.points for found in lines.values() for line in found):
        return None
    across = min(2, len(lines))
    down = -(-len(lines) // across)
    figure = panels_of.new_figure(3.7 * across, 0.5 + 2.6 * down)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for panel, (label, found) in zip(panels, lines.items(), strict=False):
        for number, line in enumerate(found):
            _draw(panel, line, panels_of.LINES[number % len(panels_of.LINES)], table)
        panel.set_title(label, fontsize=9, loc="left")
        panel.set_yscale("log")
        panel.set_xlabel(table.axis, fontsize=8)
        panel.set_ylabel(title_of(quantity), fontsize=8)
        panel.set_xticks([float(variant.x or 0.0) for variant in table.variants])
        panel.set_xticklabels([variant.label for variant in table.variants])
        panel.tick_params(which="both", labelsize=7)
        panel.grid(True, which="major", lw=0.4, color="0.88")
        panel.set_axisbelow(True)
    for panel in panels[len(lines) :]:
        panel.set_visible(False)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=4, fontsize=7.5, frameon=False)
    return figure


class _Line:
    """A method's values in one panel, with the paper's."""

    def __init__(self, label: str):
        self.label = label
        self.points: list[tuple[float, Value]] = []
        self.printed: list[tuple[float, float]] = []
        self.level: Value | None = None


def _lines(
    table: Table, records: Sequence[Record], problem: Entry, columns: Sequence[Column],
    quantity: str,
) -> list[_Line]:  # fmt: skip
    lines: dict[str, _Line] = {}
    for column in columns:
        line = lines.setdefault(column.method.label, _Line(column.method.label))
        value = value_in(records, problem, column, quantity, len(table.seeds))
        if not column.variant.label:
            line.level = value if value.mean is not None else None
            line.points = [(0.0, value)] if value.mean is not None else []
            continue
        x = float(column.variant.x or 0.0)
        if value.mean is not None:
            line.points.append((x, value))
        place = table.printed.get(quantity)
        names = (problem.printed, column.method.printed)
        if place and names[0] and names[1]:
            number = printed_numbers().find(place, names[0], names[1], column.variant.printed)
            if number is not None:
                line.printed.append((x, number[0]))
    return list(lines.values())


def _draw(panel: Axes, line: _Line, colour: str, table: Table) -> None:
    if line.level is not None and line.level.mean is not None:
        panel.axhline(line.level.mean, color=colour, ls="--", lw=1.2, label=line.label)
        low, high = _band(line.level)
        panel.axhspan(low, high, color=colour, alpha=0.10, lw=0)
    elif line.points:
        x = np.array([place for place, _ in line.points])
        means = np.array([value.mean for _, value in line.points], np.float64)
        bands = np.array([_band(value) for _, value in line.points])
        panel.plot(x, means, color=colour, marker="o", ms=3.5, lw=1.4, label=line.label)
        panel.fill_between(x, bands[:, 0], bands[:, 1], color=colour, alpha=0.18, lw=0)
    if line.printed:
        places, numbers = zip(*line.printed, strict=True)
        panel.plot(
            places, numbers, color=colour, marker="s", ms=4, mfc="none", ls=":", lw=0.9,
            label=f"{line.label}, printed",
        )  # fmt: skip


def _band(value: Value) -> tuple[float, float]:
    """One deviation each way, but not below the smallest value: the axis is logarithmic."""
    assert value.mean is not None
    deviation = value.deviation or 0.0
    lowest = min(value.values)
    return max(value.mean - deviation, min(lowest, value.mean)), value.mean + deviation
