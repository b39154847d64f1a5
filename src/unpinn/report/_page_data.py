"""What the page's pictures are drawn from: plain arrays, packed as text."""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import Any

import numpy as np

from unpinn.report._facts import unit_of
from unpinn.report._field_grids import FieldGrid, field_grids
from unpinn.report._png import data_address, palette, png, shaded
from unpinn.report._suspects import partition_of, suspects_table
from unpinn.training import Fit, History

# More readings than this are drawn as a sample of the retained ones beside the suspects.
MOST_READINGS = 20_000
_MOST_SUSPECTS = 12_000
_HISTORY_POINTS = 320
_BINS = 48
# Levels in which a field's values travel: finer than the eye and the readout.
_LEVELS = 65_535


def packed(array: Any, kind: str) -> dict[str, str]:
    """An array as base64 of little-endian numbers, with their type's name."""
    raw = np.ascontiguousarray(array, dtype=np.dtype(kind).newbyteorder("<")).tobytes()
    return {"type": kind, "data": base64.b64encode(raw).decode()}


def coordinates_data(fit: Fit) -> list[dict[str, Any]]:
    """Name, unit and ends of every coordinate."""
    return [
        {
            "name": name,
            "unit": unit_of(fit.problem, name),
            "low": low,
            "high": high,
            "time": name == fit.problem.time,
        }
        for name, (low, high) in fit.problem.coordinates.items()
    ]


# -- fields --------------------------------------------------------------------------------


def fields_data(fit: Fit) -> list[dict[str, Any]]:
    """Every quantity's grids: as found, as the baseline had it, and the change between them."""
    after = field_grids(fit)
    earlier = fit.before if fit.before is not None and fit.status.code != "kept" else None
    before = [] if earlier is None else field_grids(earlier)
    return [
        _field(fit, grid, before[place].values if before else None)
        for place, grid in enumerate(after)
    ]


def _field(fit: Fit, grid: FieldGrid, before: np.ndarray | None) -> dict[str, Any]:
    shown = {"found": grid.values} if before is None else {
        "after unlearning": grid.values, "before": before, "change": grid.values - before,
    }  # fmt: skip
    same = [values for name, values in shown.items() if name != "change"]
    low, high = _ends(np.concatenate([values.ravel() for values in same]))
    versions = []
    for name, values in shown.items():
        ends = (low, high)
        if name == "change":
            reach = float(np.nanmax(np.abs(values))) or 1.0
            ends = (-reach, reach)
        level = np.clip((values - ends[0]) / (ends[1] - ends[0]), 0, 1)
        whole = np.round(np.nan_to_num(level) * _LEVELS)
        versions.append({
            "name": name, "low": ends[0], "high": ends[1], "change": name == "change",
            "values": packed(whole, "uint16"),
        })  # fmt: skip
    frames, up, across = grid.values.shape
    return {
        "name": grid.name,
        "unit": unit_of(fit.problem, grid.name),
        "observed": fit.observations is not None and grid.name in fit.observations.quantities,
        "across": _axis(grid.across),
        "up": None if grid.up is None else _axis(grid.up),
        "frames": None if grid.frames is None else {
            **_axis(grid.frames), "values": grid.frames[1].tolist(),
        },
        "fixed": dict(grid.fixed),
        "shape": [frames, up, across],
        "versions": versions,
    }  # fmt: skip


def still(grid: dict[str, Any]) -> str | None:
    """A field's first version at its middle frame as an image, for readers without scripts."""
    frames, up, across = grid["shape"]
    if up == 1:
        return None
    version = grid["versions"][0]
    raw = base64.b64decode(version["values"]["data"])
    level = np.frombuffer(raw, "<u2").reshape(frames, up, across)[frames // 2] / _LEVELS
    return data_address(png(shaded(level[::-1], 0.0, 1.0), palette("viridis")))


def colours() -> dict[str, str]:
    """The page's colour maps: for fields, and for changes, as hexadecimal text."""
    return {
        "field": palette("viridis").tobytes().hex(),
        "change": palette("RdBu_r").tobytes().hex(),
    }


def _axis(axis: tuple[str, np.ndarray]) -> dict[str, Any]:
    return {"name": axis[0], "low": float(axis[1][0]), "high": float(axis[1][-1])}


def _ends(values: np.ndarray) -> tuple[float, float]:
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


# -- readings ------------------------------------------------------------------------------


def readings_data(fit: Fit) -> dict[str, Any] | None:
    """The readings that are drawn and listed, the worst first."""
    if fit.observations is None:
        return None
    table = suspects_table(fit)
    shown = table.iloc[_chosen(table["retained"].to_numpy())]
    sensors, codes = [], None
    if "sensor" in shown:
        names, codes = np.unique(shown["sensor"].to_numpy(str), return_inverse=True)
        sensors = names.tolist()
    return {
        "count": len(table),
        "shown": len(shown),
        "suspect": int((~table["retained"]).sum()),
        "row": packed(shown["reading"], "int32"),
        "sensors": sensors,
        "sensor": None if codes is None else packed(codes, "int32"),
        "points": [packed(shown[name], "float32") for name in fit.problem.coordinates],
        "quantities": [
            {
                "name": name,
                "unit": unit_of(fit.problem, name),
                "value": packed(shown[name], "float32"),
                "predicted": packed(shown[f"{name}_predicted"], "float32"),
            }
            for name in fit.observations.quantities
        ],
        "misfit": packed(shown["misfit"], "float32"),
        "score": packed(shown["score"], "float32"),
        "posterior": packed(shown["posterior"], "float32"),
        "suspects": packed(~shown["retained"], "uint8"),
        "judged": fit.partition is not None,
        "mixture": fit.partition is not None and fit.partition.posterior is not None,
    }


def _chosen(retained: np.ndarray) -> np.ndarray:
    """Rows to show: the worst suspects and a sample of the retained readings."""
    if len(retained) <= MOST_READINGS:
        return np.arange(len(retained))
    bad = np.flatnonzero(~retained)[:_MOST_SUSPECTS]
    good = np.flatnonzero(retained)
    random = np.random.default_rng(0)
    some = random.choice(good, min(len(good), MOST_READINGS - len(bad)), replace=False)
    return np.concatenate([bad, np.sort(some)])


# -- how it went ---------------------------------------------------------------------------


def history_data(fit: Fit) -> dict[str, Any] | None:
    """Every term and unknown over the epochs, the baseline's first."""
    history, begins = _joined(fit)
    if not len(history):
        return None
    scalars = [scalar.name for scalar in fit.problem.scalars]
    rows = np.unique(np.linspace(0, len(history) - 1, _HISTORY_POINTS).round().astype(int))
    edges = [*rows.tolist(), len(history)]
    terms, unknowns = [], []
    for name in history.names:
        if name in scalars:
            unknowns.append({
                "name": name, "unit": unit_of(fit.problem, name),
                "values": packed(history[name][rows], "float32"),
            })  # fmt: skip
            continue
        # A mean over each stretch, since single epochs of a loss are noisy.
        values = [_mean(history[name][a:b]) for a, b in pairwise(edges)]
        if np.isfinite(values).any():
            terms.append({"name": name, "values": packed(values, "float32")})
    return {
        "epochs": packed(rows + 1, "int32"),
        "count": len(history),
        "terms": terms,
        "unknowns": unknowns,
        "stages": [{"name": kind, "epoch": start + 1} for kind, start in history.stages],
        "unlearning": begins,
    }


def _joined(fit: Fit) -> tuple[History, int | None]:
    if fit.before is None or fit.status.code == "kept":
        return fit.history, None
    return fit.before.history.joined(fit.history), len(fit.before.history) + 1


def _mean(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else float("nan")


def scores_data(fit: Fit) -> dict[str, Any] | None:
    """How the scores are distributed, retained and suspect apart, on a logarithmic axis."""
    if fit.observations is None or fit.partition is None:
        return None
    found = partition_of(fit)
    score = np.maximum(found.score, max(float(found.score.max()) * 1e-5, 1e-300))
    if not np.isfinite(score).all() or score.min() == score.max():
        return None
    edges = np.linspace(np.log10(score.min()), np.log10(score.max()), _BINS + 1)
    count = lambda mask: np.histogram(np.log10(score[mask]), edges)[0].tolist()  # noqa: E731
    return {
        "edges": edges.tolist(),
        "retained": count(found.retained),
        "suspect": count(found.suspect),
    }
