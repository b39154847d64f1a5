"""The parts that pictures are put together from: panels, colour bars, markers, checks.

Fields are drawn in viridis and errors in reversed magma, where light means no error. Classes of
readings differ in colour (those of Okabe and Ito) and in marker, for print in grey.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unpinn._errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILION, BLACK, ORANGE = "#0072B2", "#D55E00", "#000000", "#E69F00"
GREEN, SKY, PURPLE = "#009E73", "#56B4E9", "#CC79A7"
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
FIELD, ERROR = "viridis", "magma_r"
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
# More points than this along a line are finer than what is printed.
MOST_DRAWN = 1_000
Domain = Sequence[Sequence[float | int]]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that pyplot knows nothing of."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


# -- fields --------------------------------------------------------------------------------


def field(panel: Axes, x, y, values, axes: Sequence[str], colours: str, low, high) -> Any:
    """Draw a field on a grid; gives the image, for a colour bar."""
    # Pixels in vector files too: a grid of 200 by 200 would make 40,000 paths.
    image = panel.pcolormesh(
        x, y, values.T, cmap=colours, vmin=low, vmax=high, shading="nearest", rasterized=True
    )
    frame(panel, [(x.min(), x.max()), (y.min(), y.max())], axes, margin=0.0)
    return image


def colour_bar(figure: Figure, panel: Axes, image: Any, drawn: Sequence[np.ndarray] = ()) -> None:
    """A colour bar beside a panel, as high as it, with arrows where drawn values go beyond."""
    low, high = image.get_clim()
    slack = 1e-6 * (high - low)
    below = any(values.min() < low - slack for values in drawn)
    above = any(values.max() > high + slack for values in drawn)
    extend = ("max" if above else "neither") if not below else ("both" if above else "min")
    place = panel.inset_axes((1.04, 0.0, 0.05, 1.0))
    bar = figure.colorbar(image, cax=place, extend=extend)
    bar.ax.tick_params(labelsize=7)
    bar.locator = _few_ticks()
    bar.outline.set_linewidth(0.5)


def cut(panel: Axes, x, y, truth, predictions: Mapping[str, np.ndarray], axes, name: str) -> None:
    """Fields along the first coordinate at the middle of the second."""
    middle = len(y) // 2
    panel.plot(x, truth[:, middle], color=BLACK, lw=1.6, label="exact")
    colours = (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY)
    for number, (label, values) in enumerate(predictions.items()):
        colour, style = colours[number % len(colours)], ("--", "-", ":", "-.")[number % 4]
        panel.plot(x, values[:, middle], color=colour, ls=style, lw=1.1, label=label)
    panel.set_title(f"{name} at {axes[1]} = {y[middle]:.3g}", fontsize=9)
    panel.set_xlabel(axes[0], fontsize=8)
    panel.tick_params(labelsize=7)
    panel.margins(x=0)
    panel.legend(fontsize=6.5, framealpha=0.8, edgecolor="none", handlelength=1.8)


def frame(panel: Axes, domain: Domain, axes: Sequence[str], margin: float = 0.04) -> None:
    """Limits, aspect and labels of a panel of two coordinates."""
    (left, right), (bottom, top) = domain
    width, height = (right - left) or 1.0, (top - bottom) or 1.0
    panel.set_xlim(left - margin * width, right + margin * width)
    panel.set_ylim(bottom - margin * height, top + margin * height)
    # Lengths of one kind are drawn alike; a time of a fiftieth is not.
    panel.set_aspect("equal" if 0.25 <= width / height <= 4 else "auto")
    if panel.get_aspect() == "auto":
        panel.set_box_aspect(1)
    for axis, name in ((panel.xaxis, axes[0]), (panel.yaxis, axes[1])):
        axis.set_label_text(name, fontsize=8)
        axis.set_major_locator(_few_ticks())
    panel.tick_params(labelsize=7)


def relative_height(domain: Domain) -> float:
    """How high a panel of two coordinates is for its width, as `frame` draws it."""
    (left, right), (bottom, top) = domain
    width, height = (right - left) or 1.0, (top - bottom) or 1.0
    return height / width if 0.25 <= width / height <= 4 else 1.0


def outer_labels(panels: np.ndarray, columns_from: int = 1) -> None:
    """Only the first column and the last row of panels keep their labels."""
    for row in panels:
        for panel in row[columns_from:]:
            panel.set_ylabel("")
            panel.tick_params(labelleft=False)
    for panel in panels[:-1].ravel():
        panel.set_xlabel("")
        panel.tick_params(labelbottom=False)


# -- points --------------------------------------------------------------------------------


def readings(panel: Axes, points, chosen, colour: str, marker: str, label: str) -> None:
    """Draw some of the readings; all of them decide the size of a marker."""
    place = spread(points[:, :2])[chosen]
    size = marker_size(len(points)) * (1.5 if marker in "^x" else 1.0)
    width = 0.7 if marker == "x" else 0.0
    x, y = place.T
    panel.scatter(x, y, s=size, c=colour, marker=marker, label=label, linewidths=width)


def spread(points: np.ndarray) -> np.ndarray:
    """Points at one place laid on a sunflower around it, within its share of the plane."""
    rounded = np.round(points, 9)
    _, group, count = np.unique(rounded, axis=0, return_inverse=True, return_counts=True)
    if count.max() == 1:
        return points
    group = group.ravel()
    order = np.argsort(group, kind="stable")
    number = np.empty(len(points))
    number[order] = np.arange(len(points)) - np.repeat(np.cumsum(count) - count, count)
    radius = 0.44 * np.sqrt((number + 0.5) / count[group])
    angle = number * GOLDEN_ANGLE
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    gaps = np.array([_gap(column) for column in rounded.T])
    return points + np.where(count[group] > 1, radius, 0.0)[:, None] * gaps * circle


def marker_size(count: int) -> float:
    """How large each of so many markers is drawn."""
    return float(np.clip(9_000 / max(count, 1), 2.0, 18.0))


def ends(points: np.ndarray, domain: Domain | None) -> Domain:
    """The domain's first two coordinates, or those the points cover."""
    if domain is not None:
        return [tuple(map(float, pair)) for pair in list(domain)[:2]]
    return [(float(column.min()), float(column.max())) for column in points[:, :2].T]


def legend_above(figure: Figure, panel: Axes) -> None:
    """The panel's legend above the figure, its markers large enough to see."""
    handles, labels = panel.get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside upper center", ncols=2, fontsize=7.5, frameon=False
    )
    for handle in legend.legend_handles:
        if handle is not None and hasattr(handle, "set_sizes"):
            handle.set_sizes([22.0])


def score_histogram(panel: Axes, score: np.ndarray, classes, threshold: float | None) -> None:
    """How scores are distributed, by class, on a logarithmic axis."""
    positive = score[np.isfinite(score) & (score > 0)]
    if not len(positive):
        raise UserError("no score is above zero, so there is nothing to draw on a logarithmic axis")
    low, high = np.quantile(positive, [0.002, 1.0])
    edges = np.geomspace(0.999 * low, 1.001 * high, 41).tolist()
    # Scores of zero, and the last few below, are counted at the lower end.
    inside = np.clip(np.nan_to_num(score, posinf=high), edges[0], edges[-1])
    panel.hist(
        [inside[chosen] for chosen, _, _ in classes],
        edges,
        stacked=True,
        color=[colour for _, colour, _ in classes],
    )
    if threshold is not None:
        panel.axvline(threshold, color=BLACK, ls="--", lw=1.1)
        panel.annotate(
            "threshold", (threshold, 1), (4, -4), xycoords=("data", "axes fraction"),
            textcoords="offset points", va="top", fontsize=7.5,
        )  # fmt: skip
    panel.set_xscale("log")
    panel.set_xlabel("score", fontsize=8)
    panel.set_ylabel("readings", fontsize=8)
    panel.tick_params(labelsize=7)


def _gap(column: np.ndarray) -> float:
    gaps = np.diff(np.unique(column))
    return float(np.median(gaps)) if len(gaps) else 1.0


def _few_ticks():
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5, steps=[1, 2, 5, 10], min_n_ticks=3)


# -- histories -----------------------------------------------------------------------------


def epoch_axis(panel: Axes, count: int, stages: Mapping[str, int] | None) -> None:
    """Epochs along the panel, with the beginning of each stage."""
    panel.set_xlabel("epoch", fontsize=8)
    panel.tick_params(labelsize=7)
    panel.set_xlim(1, max(count, 2))
    panel.grid(True, which="major", lw=0.4, color="0.88")
    for name, begin in (stages or {}).items():
        if begin > 0:
            panel.axvline(begin, color="0.45", lw=0.8, ls=":")
        panel.annotate(
            name, (max(begin, 1), 1), (3, -3), xycoords=("data", "axes fraction"),
            textcoords="offset points", va="top", fontsize=7, color="0.35",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85},
        )  # fmt: skip


def thinned(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Epochs and at most so many rows as a line shows, each the mean of its block."""
    block = -(-len(rows) // MOST_DRAWN)
    epochs = np.arange(1, len(rows) + 1, dtype=np.float64)
    if block == 1:
        return epochs, rows
    starts = np.arange(0, len(rows), block)
    present = np.isfinite(rows)
    count = np.add.reduceat(present.astype(np.float64), starts)
    total = np.add.reduceat(np.where(present, rows, 0.0), starts)
    means = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return np.add.reduceat(epochs, starts) / np.diff([*starts, len(rows)]), means


# -- checks and numbers --------------------------------------------------------------------


def on_grid(points: Any, axes: Sequence[str], shape: Sequence[int], **values: Any):
    """The first two axes, and every array arranged as the grid."""
    points = np.asarray(points, np.float64)
    total, dimensions = int(np.prod(shape)), len(shape)
    if len(axes) != dimensions or points.shape != (total, dimensions) or dimensions < 2:
        raise UserError(
            f"points of shape {points.shape} are no grid of {tuple(shape)} points in the "
            f"coordinates {', '.join(axes)}; pass as many rows as the grid has, and two or more "
            "coordinates"
        )
    arranged = []
    for name, given in values.items():
        array = np.asarray(given, np.float64)
        if array.size != total:
            raise UserError(f"{name} has {array.size} values, but the grid has {total} points")
        arranged.append(array.reshape(shape))
    mesh = points.reshape(*shape, dimensions)
    first = (0,) * (dimensions - 2)
    return mesh[(slice(None), 0, *first, 0)], mesh[(0, slice(None), *first, 1)], *arranged


def same_length(points: np.ndarray, arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse arrays that do not have one entry a point."""
    if points.ndim != 2 or points.shape[1] < 2 or not len(points):
        raise UserError(f"points must be an array (N, 2) or wider, not of shape {points.shape}")
    for name, array in arrays.items():
        if array.shape != (len(points),):
            raise UserError(f"{name} has shape {array.shape}, but there are {len(points)} points")


def history(names: Sequence[str], rows: Any) -> np.ndarray:
    """A history's rows, checked against the names of its columns."""
    rows = np.asarray(rows, np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(names) or not rows.size:
        raise UserError(
            f"a history of {len(names)} columns must be a non-empty array (epochs, {len(names)}), "
            f"not of shape {rows.shape}"
        )
    return rows


def value_range(values: np.ndarray) -> tuple[float, float]:
    """The lowest and highest value, apart even for a constant."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def relative_error(found: np.ndarray, truth: np.ndarray) -> str:
    """The relative L2 error in three digits."""
    size = float(np.linalg.norm(truth))
    return f"{float(np.linalg.norm(found - truth)) / size:.3g}" if size > 0 else "undefined"
