"""Rows of a file as numbers, and which of them cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.problem import Problem
from unpinn.readings._columns import Roles
from unpinn.readings._reading_report import Dropped
from unpinn.readings._tables import Table

_SHOWN = 5
# How far outside the domain a reading may lie by rounding, in units of the domain's width.
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as numbers.

    Arguments:
        points: coordinates in the problem's units, (N, dimensions).
        values: quantities in the problem's units, (N, quantities), NaN where missing.
        rows: the file's number of each.
        sigma: or None.
        codes: number of each row's sensor, or None.
        labels: the sensors' names.
        stamped: coordinates that were timestamps.
    """

    points: np.ndarray
    values: np.ndarray
    rows: np.ndarray
    sigma: np.ndarray | None
    codes: np.ndarray | None
    labels: tuple[str, ...]
    stamped: frozenset[str] = frozenset()

    def take(self, index: np.ndarray) -> Rows:
        pick: Callable[[Any], Any] = lambda a: None if a is None else a[index]  # noqa: E731
        return Rows(
            self.points[index], self.values[index], self.rows[index], pick(self.sigma),
            pick(self.codes), self.labels, self.stamped,
        )  # fmt: skip

    def sensor_names(self) -> np.ndarray | None:
        return None if self.codes is None else np.array(self.labels, dtype="U")[self.codes]


def lacking(raw: Rows, problem: Problem, roles: Roles) -> dict[str, np.ndarray]:
    """Rows that cannot be used, by reason; each row has one."""
    reasons: dict[str, np.ndarray] = {}
    taken = np.zeros(len(raw.rows), bool)
    checks = [
        (f"no value for the coordinate {name!r}", np.isnan(raw.points[:, k]))
        for k, name in enumerate(problem.coordinates)
    ]
    checks.append((f"no value of {' or '.join(roles.quantities)}", np.isnan(raw.values).all(1)))
    if raw.sigma is not None:
        checks.append((f"no {roles.sigma}", np.isnan(raw.sigma)))
    for reason, mask in checks:
        reasons[reason] = mask & ~taken
        taken |= mask
    return reasons


def without(raw: Rows, reasons: Mapping[str, np.ndarray], dropped: list[Dropped]) -> Rows:
    keep = np.ones(len(raw.rows), bool)
    for reason, mask in reasons.items():
        if mask.any():
            first = tuple(raw.rows[mask][:_SHOWN].tolist())
            dropped.append(Dropped(reason, int(mask.sum()), first))
            keep &= ~mask
    return raw if keep.all() else raw.take(keep)


def inside(raw: Rows, problem: Problem, table: Table, outside: str, dropped: list[Dropped]):
    beyond = np.zeros(len(raw.rows), bool)
    worst = None
    for column, (name, (low, high)) in enumerate(problem.coordinates.items()):
        slack = _SLACK * (high - low)
        place = raw.points[:, column]
        mask = (place < low - slack) | (place > high + slack)
        if mask.any() and worst is None:
            worst = name, int(np.flatnonzero(mask)[0]), low, high, column
        beyond |= mask
    if worst is None:
        return raw
    name, row, low, high, column = worst
    if outside == "drop":
        return without(raw, {"it lies outside the domain": beyond}, dropped)
    raise UserError(
        f"{table.name}: {int(beyond.sum()):,} of {len(beyond):,} readings lie outside the domain, "
        f"first in {table.row_word} {raw.rows[row]} ({name} = {raw.points[row, column]:g}, domain "
        f"[{low:g}, {high:g}]); check the units, widen the domain, or pass outside='drop'"
    )


def single(raw: Rows, duplicates: str, dropped: list[Dropped]) -> Rows:
    """One reading a place and sensor."""
    if duplicates == "keep" or len(raw.rows) < 2:
        return raw
    import pandas as pd

    key: dict[Any, np.ndarray] = dict(enumerate(raw.points.T))
    if raw.codes is not None:
        key["sensor"] = raw.codes
    else:
        key |= {("value", k): column for k, column in enumerate(raw.values.T)}
    frame = pd.DataFrame(key)
    again = frame.duplicated().to_numpy()
    if not again.any():
        return raw
    # Only the rows that have a twin are grouped: there are few of them among millions.
    involved = np.flatnonzero(frame.duplicated(keep=False).to_numpy())
    groups = frame.iloc[involved].groupby(list(frame.columns), sort=False, dropna=False).ngroup()
    kept = involved[~again[involved]]
    numbers = pd.DataFrame(raw.values[involved]).groupby(groups.to_numpy())
    merged = (numbers.mean() if duplicates == "average" else numbers.first()).to_numpy()
    values = raw.values.copy()
    values[kept] = merged
    merged_raw = replace(raw, values=values)
    if duplicates == "average" and raw.sigma is not None:
        # Independent errors shrink; the quantity that was read least often is the least sure.
        there = numbers.count().replace(0, np.iinfo(np.int64).max).min(axis=1).to_numpy()
        squares = pd.Series(raw.sigma[involved] ** 2).groupby(groups.to_numpy()).mean().to_numpy()
        sigma = raw.sigma.copy()
        sigma[kept] = np.sqrt(squares / there)
        merged_raw = replace(merged_raw, sigma=sigma)
    same = "place, time and sensor" if raw.codes is not None else "place and values"
    reason = {
        "first": f"it repeats the {same} of an earlier row",
        "average": f"it was averaged into an earlier row of the same {same}",
    }[duplicates]
    return without(merged_raw, {reason: again}, dropped)
