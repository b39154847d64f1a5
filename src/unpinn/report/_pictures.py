"""Pictures, one function each: plain arrays in, a Matplotlib figure out, no global state touched.

Fields are drawn on the exact solution's scale and errors on their own; what lies beyond a scale is
told by the arrows of its colour bar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unpinn._errors import UserError
from unpinn.report import _panels as panels_of
from unpinn.report._panels import BLACK, BLUE, ERROR, FIELD, LINES, SKY, VERMILION, Domain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def triptych(
    points: Any,
    exact: Any,
    prediction: Any,
    *,
    axes: Sequence[str],
    shape: Sequence[int],
    name: str = "u",
) -> Figure:
    """The exact field, the predicted one on the same scale, and the error between them.

    Arguments:
        points: (n, 2), the rows of a grid with the last coordinate fastest.
        exact: (n,).
        prediction: (n,).
        axes: names of the two coordinates.
        shape: points along each.
        name: the field's.
    """
    _dimensions("a triptych", axes, 2, "time_slices")
    x, y, truth, found = panels_of.on_grid(points, axes, shape, exact=exact, prediction=prediction)
    height = panels_of.relative_height([(x.min(), x.max()), (y.min(), y.max())])
    figure = panels_of.new_figure(7.4, 0.55 + 1.75 * height)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    low, high = panels_of.value_range(truth)
    for panel, values, title in zip(panels, (truth, found), ("exact", "predicted"), strict=False):
        image = panels_of.field(panel, x, y, values, axes, FIELD, low, high)
        panel.set_title(f"{title} {name}", fontsize=9)
    panels_of.colour_bar(figure, panels[1], image, (truth, found))
    error = np.abs(found - truth)
    image = panels_of.field(panels[2], x, y, error, axes, ERROR, 0.0, _top(error))
    panels[2].set_title(
        f"|error|, relative L² {panels_of.relative_error(found, truth)}", fontsize=9
    )
    panels_of.colour_bar(figure, panels[2], image)
    panels_of.outer_labels(panels[None, :])
    return figure


def comparison(
    points: Any,
    exact: Any,
    predictions: Mapping[str, Any],
    *,
    axes: Sequence[str],
    shape: Sequence[int],
    name: str = "u",
) -> Figure:
    """Several methods' fields above their errors, all on shared scales, beside the exact field.

    Two methods make four panels. Under the exact field stands a cut through all fields at the
    middle of the last coordinate.

    Arguments:
        points: (n, 2), the rows of a grid with the last coordinate fastest.
        exact: (n,).
        predictions: by method, (n,) each: the baseline and what unlearning made of it, say.
        axes: names of the two coordinates.
        shape: points along each.
        name: the field's.
    """
    _dimensions("a comparison", axes, 2, "time_slices")
    if not predictions:
        raise UserError("a comparison needs at least one method's prediction")
    grid = panels_of.on_grid(points, axes, shape, exact=exact)
    x, y, truth = grid
    found = {m: panels_of.on_grid(points, axes, shape, **{m: p})[2] for m, p in predictions.items()}
    height = panels_of.relative_height([(x.min(), x.max()), (y.min(), y.max())])
    figure = panels_of.new_figure(0.9 + 2.1 * (1 + len(found)), 0.9 + 3.5 * height)
    panels = figure.subplots(2, 1 + len(found), squeeze=False)
    low, high = panels_of.value_range(truth)
    largest = max(_top(np.abs(values - truth)) for values in found.values())
    image = panels_of.field(panels[0, 0], x, y, truth, axes, FIELD, low, high)
    panels[0, 0].set_title(f"exact {name}", fontsize=9)
    for (upper, lower), (label, values) in zip(panels[:, 1:].T, found.items(), strict=True):
        panels_of.field(upper, x, y, values, axes, FIELD, low, high)
        upper.set_title(f"{label}, error {panels_of.relative_error(values, truth)}", fontsize=9)
        errors = panels_of.field(lower, x, y, np.abs(values - truth), axes, ERROR, 0.0, largest)
        lower.set_title(f"|error| of {label}", fontsize=9)
    panels_of.colour_bar(figure, panels[0, -1], image, (truth, *found.values()))
    panels_of.colour_bar(figure, panels[1, -1], errors)
    panels_of.outer_labels(panels[:1])
    panels_of.outer_labels(panels[1:], columns_from=2)
    for panel in panels[0]:
        panel.set_xlabel("")
    panels_of.cut(panels[1, 0], x, y, truth, found, axes, name)
    panels[1, 0].set_box_aspect(height)
    return figure


def time_slices(
    points: Any,
    exact: Any,
    prediction: Any,
    *,
    axes: Sequence[str],
    shape: Sequence[int],
    name: str = "u",
    count: int = 4,
) -> Figure:
    """A field of two coordinates and time at a few times: exact, predicted, and the error.

    Arguments:
        points: (n, 3), the rows of a grid, time last and fastest.
        exact: (n,).
        prediction: (n,).
        axes: names of the three coordinates.
        shape: points along each.
        name: the field's.
        count: how many times, the first and the last among them.
    """
    _dimensions("a picture of time slices", axes, 3, "triptych")
    x, y, truth, found = panels_of.on_grid(points, axes, shape, exact=exact, prediction=prediction)
    times = np.asarray(points, np.float64)[: shape[2], 2]
    chosen = np.unique(np.linspace(0, shape[2] - 1, max(count, 1)).round().astype(int))
    height = panels_of.relative_height([(x.min(), x.max()), (y.min(), y.max())])
    figure = panels_of.new_figure(1.1 + 1.6 * len(chosen), 0.75 + 3 * (1.55 * height + 0.08))
    panels = figure.subplots(3, len(chosen), sharex=True, sharey=True, squeeze=False)
    low, high = panels_of.value_range(truth)
    error = np.abs(found - truth)
    rows = ((truth, FIELD, low, high), (found, FIELD, low, high), (error, ERROR, 0.0, _top(error)))
    for row, (values, colours, bottom, top) in zip(panels, rows, strict=True):
        for panel, k in zip(row, chosen, strict=True):
            image = panels_of.field(panel, x, y, values[..., k], axes, colours, bottom, top)
        panels_of.colour_bar(figure, row[-1], image, (values,))
    for panel, k in zip(panels[0], chosen, strict=True):
        panel.set_title(f"{axes[2]} = {times[k]:.3g}", fontsize=9)
    panels_of.outer_labels(panels)
    for panel, label in zip(panels[:, 0], ("exact", "predicted", "|error| of"), strict=True):
        panel.set_ylabel(f"{label} {name}\n{axes[1]}", fontsize=8)
    relative = panels_of.relative_error(found, truth)
    figure.suptitle(f"relative L² {relative} over all times", fontsize=9)
    return figure


def reading_layout(
    points: Any, sigma: Any, is_bad: Any, *, axes: Sequence[str], domain: Domain | None = None
) -> Figure:
    """Where readings were taken and which of them are truly bad.

    Readings at one place, at several times say, are spread around it.

    Arguments:
        points: (N, dimensions); the first two coordinates are drawn.
        sigma: the true level of each reading's error, (N,).
        is_bad: the true split, (N,).
        axes: names of the coordinates.
        domain: lowest and highest value of each coordinate.
    """
    points, sigma = np.asarray(points, np.float64), np.asarray(sigma, np.float64)
    bad = np.asarray(is_bad, bool)
    panels_of.same_length(points, {"sigma": sigma, "is_bad": bad})
    within = panels_of.ends(points, domain)
    figure = panels_of.new_figure(4.6, 0.9 + 3.6 * panels_of.relative_height(within))
    panel = figure.subplots()
    kinds = ((~bad, "good", BLUE, "o"), (bad, "bad", VERMILION, "^"))
    for chosen, word, colour, marker in kinds:
        if chosen.any():
            level = np.sqrt(np.mean(sigma[chosen] ** 2))
            label = f"{word}, σ = {level:.3g} ({chosen.sum()}, {chosen.mean():.0%})"
            panels_of.readings(panel, points, chosen, colour, marker, label)
    panels_of.frame(panel, within, axes, margin=0.06)
    if len(axes) > 2:
        panel.set_title("readings of one place are spread around it", fontsize=8)
    panels_of.legend_above(figure, panel)
    return figure


def point_layout(
    readings: Any,
    collocation: Any,
    conditions: Mapping[str, Any],
    *,
    axes: Sequence[str],
    domain: Domain | None = None,
) -> Figure:
    """All points of a problem: where it is read, and where equations and conditions hold.

    Arguments:
        readings: (N, dimensions).
        collocation: (n, dimensions).
        conditions: by name, (n, dimensions) each.
        axes: names of the coordinates; with three, a second row shows the last one.
        domain: lowest and highest value of each coordinate.
    """
    read, inside = np.asarray(readings, np.float64), np.asarray(collocation, np.float64)
    panels_of.same_length(read, {})
    panels_of.same_length(inside, {})
    parts = {f"readings ({len(read)})": [("", read, BLUE)]}
    parts[f"equations ({len(inside)})"] = [("", inside, "0.35")]
    if conditions:
        parts["conditions"] = _distinct(conditions)
    ends = domain or [(c.min(), c.max()) for c in np.vstack([read, inside]).T]
    planes = [(0, 1)] if len(axes) == 2 else [(0, 1), (0, len(axes) - 1)]
    heights = [panels_of.relative_height([ends[a], ends[b]]) for a, b in planes]
    figure = panels_of.new_figure(0.5 + 2.4 * len(parts), 1.0 + 2.3 * sum(heights))
    panels = figure.subplots(len(planes), len(parts), squeeze=False, height_ratios=heights)
    for panel, title in zip(panels[0], parts, strict=True):
        panel.set_title(title, fontsize=9)
    for row, (a, b) in zip(panels, planes, strict=True):
        for panel, sets in zip(row, parts.values(), strict=True):
            for label, points, colour in sets:
                size = 0.5 * panels_of.marker_size(len(points))
                panel.scatter(*points[:, [a, b]].T, s=size, c=colour, lw=0, label=label)
            panels_of.frame(panel, [ends[a], ends[b]], (axes[a], axes[b]), margin=0.06)
        for panel in row[1:]:
            panel.set_ylabel("")
            panel.tick_params(labelleft=False)
    if conditions:
        panels_of.legend_above(figure, panels[0, -1])
    return figure


def partition_map(
    points: Any,
    suspect: Any,
    *,
    axes: Sequence[str],
    is_bad: Any = None,
    score: Any = None,
    threshold: float | None = None,
    domain: Domain | None = None,
) -> Figure:
    """Which readings were found suspect, judged by the true split where that is known.

    Arguments:
        points: (N, dimensions); the first two coordinates are drawn.
        suspect: the partition, (N,).
        axes: names of the coordinates.
        is_bad: the true split, (N,).
        score: what the partition was made from, (N,); drawn as a second panel.
        threshold: the score above which readings are suspect.
        domain: lowest and highest value of each coordinate.
    """
    points, suspect = np.asarray(points, np.float64), np.asarray(suspect, bool)
    given = {"suspect": suspect}
    if is_bad is not None:
        given["is_bad"] = np.asarray(is_bad, bool)
    if score is not None:
        given["score"] = np.asarray(score, np.float64)
    panels_of.same_length(points, given)
    classes = _classes(suspect, given.get("is_bad"))
    within = panels_of.ends(points, domain)
    columns = 1 if score is None else 2
    height = max(panels_of.relative_height(within), 0.75 if columns == 2 else 0.0)
    figure = panels_of.new_figure(4.3 * columns, 1.0 + 3.4 * height)
    panels = np.atleast_1d(figure.subplots(1, columns))
    for label, (chosen, colour, marker) in classes.items():
        if chosen.any():
            text = f"{label} ({chosen.sum()})"
            panels_of.readings(panels[0], points, chosen, colour, marker, text)
    panels_of.frame(panels[0], within, axes, margin=0.06)
    if len(axes) > 2:
        panels[0].set_title("readings of one place are spread around it", fontsize=8)
    if score is not None:
        drawn = [entry for entry in classes.values() if entry[0].any()]
        panels_of.score_histogram(panels[1], given["score"], drawn, threshold)
    panels_of.legend_above(figure, panels[0])
    return figure


def loss_history(
    names: Sequence[str], rows: Any, *, stages: Mapping[str, int] | None = None
) -> Figure:
    """Every term of the loss over the epochs, the total in black.

    Arguments:
        names: what the columns are; one called "total" is drawn heavier.
        rows: (epochs, columns); NaN where a stage does not compute a term.
        stages: by name, the epoch at which each begins.
    """
    rows = panels_of.history(names, rows)
    figure = panels_of.new_figure(6.2, 3.4)
    panel = figure.subplots()
    epochs, drawn = panels_of.thinned(rows)
    terms = 0
    for name, values in zip(names, drawn.T, strict=True):
        positive = np.where(values > 0, values, np.nan)
        if name == "total":
            panel.plot(epochs, positive, color=BLACK, lw=1.8, label=name, zorder=1)
            continue
        colour, style = LINES[terms % len(LINES)], ("-", "--", ":")[terms // len(LINES) % 3]
        panel.plot(epochs, positive, color=colour, ls=style, lw=1.1, label=name, zorder=2)
        terms += 1
    panel.set_yscale("log")
    panel.set_ylabel("loss", fontsize=8)
    panels_of.epoch_axis(panel, len(rows), stages)
    figure.legend(loc="outside right upper", fontsize=7.5, frameon=False)
    return figure


def unknown_trajectories(
    names: Sequence[str],
    rows: Any,
    *,
    truth: Mapping[str, float] | None = None,
    stages: Mapping[str, int] | None = None,
) -> Figure:
    """How each unknown number moved, and where it should have gone.

    Arguments:
        names: the unknowns.
        rows: (epochs, unknowns).
        truth: their true values, where known.
        stages: by name, the epoch at which each begins.
    """
    rows = panels_of.history(names, rows)
    figure = panels_of.new_figure(6.2, 0.7 + 1.7 * len(names))
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    epochs, drawn = panels_of.thinned(rows)
    for panel, name, values, last in zip(panels, names, drawn.T, rows[-1], strict=True):
        panel.plot(epochs, values, color=BLUE, lw=1.4)
        title = f"{name} = {last:.5g}"
        if truth is not None and name in truth:
            panel.axhline(truth[name], color=VERMILION, ls="--", lw=1.1)
            title += f"   (true {truth[name]:g}, dashed)"
        panel.set_title(title, fontsize=9, loc="left")
        panel.set_ylabel(name, fontsize=8)
        panels_of.epoch_axis(panel, len(rows), stages if panel is panels[0] else None)
    for panel in panels[:-1]:
        panel.set_xlabel("")
    return figure


def _dimensions(what: str, axes: Sequence[str], count: int, other: str) -> None:
    if len(axes) != count:
        raise UserError(
            f"{what} needs {count} coordinates, not {len(axes)} ({', '.join(axes)}); "
            f"{other} draws the others"
        )


def _top(error: np.ndarray) -> float:
    """The upper end of an error's scale, above zero even without an error."""
    return float(error.max()) or 1e-12


def _distinct(conditions: Mapping[str, Any]) -> list[tuple[str, np.ndarray, str]]:
    """Conditions' points, those that share them under one label, so that none hides another."""
    found: list[tuple[list[str], np.ndarray]] = []
    for name, where in conditions.items():
        points = np.asarray(where, np.float64)
        same = [names for names, others in found if np.array_equal(points, others)]
        if same:
            same[0].append(name)
        else:
            found.append(([name], points))
    return [
        (f"{', '.join(names)} ({len(points)})", points, LINES[(k + 1) % len(LINES)])
        for k, (names, points) in enumerate(found)
    ]


def _classes(suspect: np.ndarray, bad: np.ndarray | None) -> dict[str, tuple]:
    if bad is None:
        return {"retained": (~suspect, BLUE, "o"), "suspect": (suspect, VERMILION, "^")}
    return {
        "good, retained": (~suspect & ~bad, SKY, "o"),
        "bad, suspect": (suspect & bad, VERMILION, "^"),
        "good, but suspect": (suspect & ~bad, BLUE, "s"),
        "bad, but retained": (~suspect & bad, BLACK, "x"),
    }
