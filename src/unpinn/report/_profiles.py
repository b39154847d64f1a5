"""A field of one coordinate and time, as curves at a few times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unpinn._errors import UserError
from unpinn.report import _panels as panels_of
from unpinn.report._panels import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY)
_STYLES = ("--", "-", ":", "-.")


def time_profiles(
    points: Any,
    exact: Any,
    predictions: Mapping[str, Any],
    *,
    axes: Sequence[str],
    shape: Sequence[int],
    name: str = "u",
    count: int = 4,
) -> Figure:
    """A field along its coordinate at a few times: several methods over the exact curve.

    Arguments:
        points: (n, 2), the rows of a grid, time last and fastest.
        exact: (n,).
        predictions: by method, (n,) each.
        axes: names of the coordinate and of time.
        shape: points along each.
        name: the field's.
        count: how many times, the first and the last among them.
    """
    if len(axes) != 2:
        raise UserError(
            f"a picture of time profiles needs 2 coordinates, not {len(axes)} ({', '.join(axes)}); "
            "time_slices draws 3"
        )
    if not predictions:
        raise UserError("a picture of time profiles needs at least one method's prediction")
    x, times, truth = panels_of.on_grid(points, axes, shape, exact=exact)
    found = {m: panels_of.on_grid(points, axes, shape, **{m: p})[2] for m, p in predictions.items()}
    chosen = np.unique(np.linspace(0, len(times) - 1, max(count, 1)).round().astype(int))
    figure = panels_of.new_figure(0.8 + 1.7 * len(chosen), 2.5)
    panels = figure.subplots(1, len(chosen), sharex=True, sharey=True, squeeze=False)[0]
    for panel, k in zip(panels, chosen, strict=True):
        panel.plot(x, truth[:, k], color=BLACK, lw=1.8, label="exact")
        for number, (label, values) in enumerate(found.items()):
            style = {"color": _COLOURS[number % 6], "ls": _STYLES[number % 4], "lw": 1.2}
            panel.plot(x, values[:, k], label=label, **style)
        panel.set_title(f"{axes[1]} = {times[k]:.3g}", fontsize=9)
        panel.set_xlabel(axes[0], fontsize=8)
        panel.tick_params(labelsize=7)
        panel.margins(x=0)
        panel.grid(True, lw=0.4, color="0.88")
    panels[0].set_ylabel(name, fontsize=8)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=len(labels), fontsize=7.5, frameon=False
    )
    return figure
