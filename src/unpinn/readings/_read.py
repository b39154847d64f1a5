"""Readings from a file: chunk by chunk into numbers, then checked, then reported."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from unpinn._errors import UserError
from unpinn.problem import Observations, Problem, observe
from unpinn.readings import _cells
from unpinn.readings._columns import Roles, UnitSpec, assign, sigma_factor
from unpinn.readings._reading_report import Dropped, ReadingReport
from unpinn.readings._rows import Rows, inside, lacking, single, without
from unpinn.readings._tables import Table, open_table

Duplicates = Literal["first", "average", "keep"]
Outside = Literal["refuse", "drop"]


class ReadingWarning(UserWarning):
    """Rows of a file were left out."""


def read_observations(
    source: Any,
    problem: Problem,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, UnitSpec] | None = None,
    sigma: float | int | str | None = None,
    sensor: str | None = None,
    *,
    duplicates: Duplicates = "first",
    outside: Outside = "refuse",
    missing: Sequence[str] = (),
    origin: str | None = None,
) -> Observations:
    """Readings of a problem's quantities from a table; warns where rows had to be left out.

    A column belongs to a coordinate, field or measurement if it has its name, with or without a
    unit in brackets: `x`, `x [mm]`, `x (mm)`. Columns of other names are told in `columns`.
    `read_with_report` gives beside the readings what became of every row.

    Arguments:
        source: a CSV, Parquet, NumPy (.npz) or NetCDF file, a pandas DataFrame or an xarray
            Dataset.
        problem: what they are readings of.
        columns: for a coordinate or quantity the name of its column, where they differ.
        units: for a coordinate or quantity the unit the problem is stated in ("m"), which needs
            the file's in brackets; a change ("mm -> m"); a factor; or a pair (factor, offset).
        sigma: standard deviation of the errors: a number in the problem's unit, or a column; a
            column called "sigma" is found by itself.
        sensor: column of sensor identifiers; one called "sensor" or "sensor_id" is found by itself.
        duplicates: what to do with rows of the same place and sensor (of the same place and
            values, where sensors are unknown): take the "first", "average" them, or "keep" all.
        outside: "refuse" or "drop" readings that lie outside the problem's domain.
        missing: further texts that stand for a missing value, such as "-9999".
        origin: from when timestamps are counted, as in "2024-05-01T12:00"; the earliest one
            unless told.

    >>> import pandas as pd
    >>> from unpinn.problem import Problem
    >>> rod = Problem({"x": (0, 1)}, ["u"], {"flat": lambda u: u.xx})
    >>> table = pd.DataFrame({"x [mm]": [0, 500, 1000], "u": [1.0, None, 2.0], "note": "a"})
    >>> read_with_report(table, rod, units={"x": "m"})[0].points.ravel().tolist()
    [0.0, 1.0]
    """
    observations, report = read_with_report(
        source, problem, columns, units, sigma, sensor,
        duplicates=duplicates, outside=outside, missing=missing, origin=origin,
    )  # fmt: skip
    if report.dropped:
        reasons = "; ".join(f"{entry.count:,}: {entry.reason}" for entry in report.dropped)
        warnings.warn(
            f"{report.source}: {report.rows_dropped:,} of {report.rows:,} rows were left out "
            f"({reasons})",
            ReadingWarning,
            stacklevel=2,
        )
    return observations


def read_with_report(
    source: Any,
    problem: Problem,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, UnitSpec] | None = None,
    sigma: float | int | str | None = None,
    sensor: str | None = None,
    *,
    duplicates: Duplicates = "first",
    outside: Outside = "refuse",
    missing: Sequence[str] = (),
    origin: str | None = None,
) -> tuple[Observations, ReadingReport]:
    """`read_observations`, and what became of every row."""
    _check_choice("duplicates", duplicates, get_args(Duplicates))
    _check_choice("outside", outside, get_args(Outside))
    if isinstance(missing, str):
        missing = (missing,)
    if not isinstance(missing, Sequence):
        raise UserError(f"missing must be a list of texts such as '-9999', not {missing!r}")
    table = open_table(source, tuple(str(text) for text in missing))
    roles = assign(table, problem, columns, units, sigma, sensor)
    raw = _gather(table, problem, roles)
    rows = len(raw.rows)
    raw, counted_from = _counted(raw, problem, roles, origin)
    dropped: list[Dropped] = []
    raw = without(raw, lacking(raw, problem, roles), dropped)
    raw = inside(raw, problem, table, outside, dropped)
    raw = single(raw, duplicates, dropped)
    if not len(raw.rows):
        told = "; ".join(f"{d.count}: {d.reason}" for d in dropped)
        raise UserError(f"{table.name} holds no reading" + (f" (left out {told})" if told else ""))
    _check_worth(raw, problem, roles, table)
    quantities = tuple(roles.quantities)
    names = raw.sensor_names()
    level = raw.sigma if roles.sigma is not None else sigma
    observations = observe(problem, raw.points, raw.values, quantities, level, names)
    report = ReadingReport(
        table.name, table.format, rows, len(observations),
        {**roles.coordinates, **roles.quantities},
        {n: c.describe() for n, c in roles.conversions.items() if c.describe()},
        {n: int(k) for n, k in zip(quantities, np.isnan(raw.values).sum(axis=0), strict=True)},
        tuple(dropped), 0 if names is None else len(np.unique(names)), roles.ignored,
        (*table.notes, *_notes(raw, roles, counted_from)), table.row_word,
    )  # fmt: skip
    return observations, report


def _gather(table: Table, problem: Problem, roles: Roles) -> Rows:
    """All rows as numbers; only the present chunk is held as the file has it."""
    text = () if roles.sensor is None else (roles.sensor,)
    factor = 1.0 if roles.sigma is None else sigma_factor(table, roles)
    points, values, sigma, codes = [], [], [], []
    labels: dict[str, int] = {}
    stamped: dict[str, bool] = {}
    count = 0
    for chunk in table.chunks(roles.wanted, text):
        columns = [
            _coordinate(chunk, name, problem, roles, table, count, stamped)
            for name in roles.coordinates
        ]
        points.append(np.stack(columns, axis=1))
        values.append(
            np.stack([_quantity(chunk, n, roles, table, count) for n in roles.quantities], 1)
        )
        if roles.sigma is not None:
            sigma.append(_cells.numbers(chunk[roles.sigma], roles.sigma, table, count) * factor)
        if roles.sensor is not None:
            names = _cells.texts(chunk[roles.sensor])
            codes.append(np.array([labels.setdefault(n, len(labels)) for n in names], np.int32))
        count += len(points[-1])
    if not count:
        raise UserError(f"{table.name} has no rows")
    return Rows(
        np.concatenate(points), np.concatenate(values),
        np.arange(count, dtype=np.int64) + table.first_row,
        np.concatenate(sigma) if sigma else None,
        np.concatenate(codes) if codes else None,
        tuple(labels), frozenset(name for name, yes in stamped.items() if yes),
    )  # fmt: skip


def _coordinate(chunk, name: str, problem, roles: Roles, table: Table, begin: int, stamped):
    column = roles.coordinates[name]
    seconds = _cells.times(chunk[column]) if name == problem.time else None
    if stamped.setdefault(name, seconds is not None) != (seconds is not None):
        raise UserError(
            f"{table.name}: column {column!r} mixes timestamps and numbers (from "
            f"{table.row_word} {table.first_row + begin} on); write one or the other"
        )
    if seconds is not None:
        return seconds
    conversion = roles.conversions[name]
    return _converted(_cells.numbers(chunk[column], column, table, begin), conversion)


def _quantity(chunk, name: str, roles: Roles, table: Table, begin: int) -> np.ndarray:
    column = roles.quantities[name]
    return _converted(_cells.numbers(chunk[column], column, table, begin), roles.conversions[name])


def _converted(values: np.ndarray, conversion) -> np.ndarray:
    return values if conversion.identity else values * conversion.factor + conversion.offset


def _counted(raw: Rows, problem: Problem, roles: Roles, origin: str | None):
    """Timestamps, held as seconds since 1970 so far, counted from the origin in the time's unit."""
    if not raw.stamped:
        if origin is not None:
            raise UserError("origin was told, but the time column holds no timestamps")
        return raw, None
    import pandas as pd

    from unpinn.readings._units import convert

    (name,) = raw.stamped
    column = list(problem.coordinates).index(name)
    first = float(np.nanmin(raw.points[:, column]))
    if origin is not None:
        try:
            stamp = pd.Timestamp(origin)
            stamp = stamp.tz_convert(None) if stamp.tzinfo is not None else stamp
        except ValueError:
            raise UserError(f"origin={origin!r} is no date such as '2024-05-01T12:00'") from None
        first = stamp.value / 1e9
    conversion = roles.conversions[name]
    factor = conversion.factor
    if conversion.target:
        factor = convert("s", conversion.target).factor
    points = raw.points.copy()
    points[:, column] = (points[:, column] - first) * factor + conversion.offset
    told = pd.Timestamp(round(first * 1e9)).isoformat()
    unit = conversion.target or "s"
    note = f"timestamps of {name} were counted in {unit} from {told}"
    return replace(raw, points=points), note


def _check_worth(raw: Rows, problem: Problem, roles: Roles, table: Table) -> None:
    """Refuse readings from which nothing can be learnt."""
    entries = int(np.isfinite(raw.values).sum())
    unknowns = len(problem.scalars)
    if entries < unknowns:
        raise UserError(
            f"{table.name} has {entries} readings for {unknowns} unknown numbers "
            f"({', '.join(s.name for s in problem.scalars)}); at least as many are needed"
        )
    repeated = [column for column in raw.values.T if np.isfinite(column).sum() > 1]
    if repeated and all(_constant(column) for column in raw.values.T):
        shown = ", ".join(f"{column[np.isfinite(column)][0]:g}" for column in repeated)
        raise UserError(
            f"{table.name}: all readings of {', '.join(roles.quantities)} are identical "
            f"({shown}), so nothing can be learnt from them; check the columns"
        )


def _constant(column: np.ndarray) -> bool:
    there = column[np.isfinite(column)]
    return len(there) == 0 or bool((there == there[0]).all())


def _notes(raw: Rows, roles: Roles, counted_from: str | None) -> list[str]:
    notes = [] if counted_from is None else [counted_from]
    for name, column in zip(roles.quantities, raw.values.T, strict=True):
        if len(column) > 1 and _constant(column):
            notes.append(f"every reading of {name} is the same, so it tells little")
    if raw.codes is not None and "" in raw.labels:
        count = int((raw.codes == raw.labels.index("")).sum())
        if count:
            notes.append(f"{count:,} readings name no sensor; they share the empty name")
    untold = [n for n, c in roles.conversions.items() if c.source and c.identity and not c.target]
    if untold:
        notes.append(
            f"units of {', '.join(untold)} were taken as the file has them, since nobody told the "
            "problem's"
        )
    return notes


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}")
