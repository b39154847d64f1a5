"""How fits, partitions and readings look in a notebook: small, self-contained HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from unpinn.problem import Observations
from unpinn.report._facts import number, shares, unknown_rows
from unpinn.report._field_grids import field_grids
from unpinn.report._png import data_address, palette, png, shaded
from unpinn.report._warnings import warnings_of
from unpinn.training import Fit, Partition

_PICTURES = 4
_SHOWN_ROWS = 5
_BINS = 40
_GOOD, _BAD = "#0072b2", "#d55e00"
_RIGHT = "text-align:right"


def fit_html(fit: Fit) -> str:
    """A fit: status, unknowns before and after, suspects, and its fields as small pictures."""
    parts = [f"<b>{escape(fit.problem.name)}</b>, {escape(fit.method)}: {escape(fit.status.code)}"]
    rows = unknown_rows(fit)
    if rows:
        before = any(row.before is not None for row in rows)
        head = ["unknown", *(["before"] if before else []), "found", "unit"]
        cells = [
            [r.name, *([number(r.before)] if before else []), number(r.after), r.unit] for r in rows
        ]
        parts.append(_table(head, cells, numeric=range(1, 2 + before)))
    count = shares(fit)
    if fit.partition is not None:
        told = f"{count['suspect']:,} of {count['count']:,} readings suspect ({count['share']:.0%})"
        parts.append(f"<div>{told}: {escape(fit.partition.rule)}</div>")
    serious = [notice.text for notice in warnings_of(fit) if notice.severity != "note"]
    parts += [f'<div style="color:{_BAD}">{escape(text)}</div>' for text in serious]
    return "<div>" + "".join(parts) + _pictures(fit) + "</div>"


def partition_html(partition: Partition) -> str:
    """A partition: the rule, the estimated noise, and how the scores are distributed."""
    suspect = int(partition.suspect.sum())
    told = f"{suspect:,} of {len(partition.score):,} readings suspect"
    parts = [f"<b>{told}</b><div>{escape(partition.rule)}</div>"]
    if partition.noise is not None:
        noise = partition.noise
        cells = [[number(noise.low), number(noise.high), f"{noise.share:.1%}"]]
        head = ["error of good readings", "of bad ones", "share of bad ones"]
        parts.append(_table(head, cells, numeric=range(3)))
    return "<div>" + "".join(parts) + _histogram(partition) + "</div>"


def observations_html(observations: Observations) -> str:
    """Readings: how many of what, their ranges, and the first few."""
    count = len(observations)
    sensors = ""
    if observations.sensor is not None:
        sensors = f" from {len(np.unique(observations.sensor.astype(str))):,} sensors"
    lines = []
    for name, column in zip(observations.quantities, observations.values.T, strict=True):
        there = column[np.isfinite(column)]
        ends = f"{number(there.min())} to {number(there.max())}" if len(there) else "–"
        lines.append([name, f"{len(there):,}", f"{count - len(there):,}", ends])
    summary = _table(["quantity", "readings", "missing", "range"], lines, numeric=range(1, 3))
    dimensions = observations.points.shape[1]
    head = [*(f"coordinate {k + 1}" for k in range(dimensions)), *observations.quantities]
    head += ["sensor"] if observations.sensor is not None else []
    first = [
        [
            *(number(value) for value in observations.points[row]),
            *(number(value) for value in observations.values[row]),
            *([str(observations.sensor[row])] if observations.sensor is not None else []),
        ]
        for row in range(min(count, _SHOWN_ROWS))
    ]
    rows = _table(head, first, numeric=range(dimensions + len(observations.quantities)))
    more = "<div>...</div>" if count > _SHOWN_ROWS else ""
    return f"<div><b>{count:,} readings{sensors}</b>{summary}{rows}{more}</div>"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], numeric: range) -> str:
    def cell(tag: str, place: int, text: Any) -> str:
        align = _RIGHT if place in numeric else "text-align:left"
        return f'<{tag} style="{align}">{escape(str(text))}</{tag}>'

    heading = "".join(cell("th", place, text) for place, text in enumerate(head))
    body = "".join(
        "<tr>" + "".join(cell("td", place, text) for place, text in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>"


def _pictures(fit: Fit) -> str:
    if len(fit.problem.coordinates) < 2 or fit.status.code == "failed":
        return ""
    shown = []
    for grid in field_grids(fit, fit.problem.columns[:_PICTURES]):
        values = grid.values[len(grid.values) // 2]
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        address = data_address(png(shaded(values[::-1], low, high), palette("viridis")))
        told = escape(f"{grid.name}, {number(low, 3)} to {number(high, 3)}")
        shown.append(
            f'<figure style="display:inline-block;margin:0 1em 0 0"><img src="{address}" '
            f'alt="{told}" width="180"><figcaption>{told}</figcaption></figure>'
        )
    return "<div>" + "".join(shown) + "</div>"


def _histogram(partition: Partition) -> str:
    """Bars of the scores' logarithms, retained below suspect, as SVG."""
    score = partition.score[partition.score > 0]
    if len(score) < 2 or score.min() == score.max():
        return ""
    level = np.log10(np.maximum(partition.score, score.max() * 1e-5))
    edges = np.linspace(level.min(), level.max(), _BINS + 1)
    good = np.histogram(level[partition.retained], edges)[0]
    bad = np.histogram(level[partition.suspect], edges)[0]
    top = max(int((good + bad).max()), 1)
    bars = []
    for place, (g, b) in enumerate(zip(good, bad, strict=True)):
        for count, base, colour in ((g, 0, _GOOD), (b, g, _BAD)):
            height, y = 60 * count / top, 60 - 60 * (base + count) / top
            bars.append(
                f'<rect x="{place * 6}" y="{y:.1f}" width="5" height="{height:.1f}" '
                f'fill="{colour}"></rect>'
            )
    told = "scores, logarithmic: retained blue, suspect orange"
    return (
        f'<svg width="{6 * _BINS}" height="62" role="img" aria-label="{told}">{"".join(bars)}</svg>'
        f"<div>{told}</div>"
    )
