"""From records to tables: mean and deviation over seeds, the best, the paper's number beside."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unpinn.rivals import method_named
from unpinn.study._collect import MISSING
from unpinn.study._plan import Entry, Plan, Table
from unpinn.study._printed import printed_numbers
from unpinn.study._quantities import better, title_of, value_of

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Value:
    """One cell of a table.

    Arguments:
        mean: over the seeds that have ended; None where none has.
        deviation: over them; None where there are fewer than two.
        values: of the single seeds.
        asked: how many seeds were asked for.
        ended: how many of them have ended, with a number or without.
        failed: how many of them failed.
        diverged: how many diverged.
        printed: the paper's mean and deviation.
        best: whether it is the best of its row.
        limit: whether its method was told the truth, and so does not compete.
        notes: numbers of the remarks on it.
    """

    mean: float | None
    deviation: float | None
    values: tuple[float, ...]
    asked: int
    ended: int = 0
    failed: int = 0
    diverged: int = 0
    printed: tuple[float, float | None] | None = None
    best: bool = False
    limit: bool = False
    notes: tuple[int, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Our mean over the paper's."""
        if self.mean is None or self.printed is None or not self.printed[0]:
            return None
        return self.mean / self.printed[0]

    @property
    def remark(self) -> str:
        """What is wrong with it, in words."""
        ended = len(self.values)
        parts = [f"{self.diverged} of {ended} diverged"] if self.diverged else []
        parts += [f"{self.failed} failed"] if self.failed else []
        if ended and ended + self.failed < self.asked:
            parts.append(f"{ended} of {self.asked} seeds")
        return ", ".join(parts)


@dataclass(frozen=True)
class Column:
    """A method, in one of its variants.

    Arguments:
        method: its entry.
        variant: the variant's; an empty one where all are the same run.
    """

    method: Entry
    variant: Entry

    @property
    def label(self) -> str:
        """What it is called."""
        return ", ".join(part for part in (self.method.label, self.variant.label) if part)


@dataclass(frozen=True)
class Sheet:
    """One quantity of a table, ready to be written.

    Arguments:
        table: what it is of.
        quantity: which quantity.
        problems: the rows.
        columns: the columns.
        values: row by row.
        notes: remarks, numbered from 1.
    """

    table: Table
    quantity: str
    problems: tuple[Entry, ...]
    columns: tuple[Column, ...]
    values: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """Its caption."""
        return f"{self.table.title}: {title_of(self.quantity)}"

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{self.table.name}-{self.quantity.replace('.', '-').replace('_', '-')}"

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return all(value.mean is None and not value.failed for row in self.values for value in row)


def sheets_of(plan: Plan, table: Table, records: Iterable[Record]) -> list[Sheet]:
    """A table's sheets, one a quantity."""
    own = [r for r in records if r["study"] == plan.name and r["table"] == table.name]
    return [_sheet(plan, table, quantity, own) for quantity in table.quantities]


def columns_of(table: Table, records: Sequence[Record]) -> tuple[Column, ...]:
    """The columns; a method whose run is the same in all variants has one."""
    columns: list[Column] = []
    for method in table.methods:
        runs: dict[tuple, set[str]] = {}
        for record in records:
            if record["column"] == method.label:
                runs.setdefault((record["problem"], record["seed"]), set()).add(record["address"])
        same = len(table.variants) > 1 and all(len(addresses) == 1 for addresses in runs.values())
        variants = (Entry("", ""),) if same else table.variants
        columns += [Column(method, variant) for variant in variants]
    return tuple(columns)


def value_in(
    records: Sequence[Record], problem: Entry, column: Column, quantity: str, seeds: int
) -> Value:
    """One cell, without what its neighbours and the paper say."""
    own = [r for r in records if r["problem"] == problem.label]
    own = [r for r in own if r["column"] == column.method.label]
    if column.variant.label:
        own = [r for r in own if r["variant"] == column.variant.label]
    runs = {r["address"]: r for r in own}.values()
    found = [value_of(r, quantity) for r in runs if r["status"] not in (MISSING, "failed")]
    values = tuple(v for v in found if v is not None and math.isfinite(v))
    return Value(
        float(np.mean(values)) if values else None,
        float(np.std(values, ddof=1)) if len(values) > 1 else None,
        values,
        seeds,
        ended=sum(r["status"] != MISSING for r in runs),
        failed=sum(r["status"] == "failed" for r in runs),
        diverged=sum(r["status"] == "diverged" for r in runs),
        limit=method_named(column.method.name).needs_truth,
    )


def _sheet(plan: Plan, table: Table, quantity: str, records: Sequence[Record]) -> Sheet:
    columns = columns_of(table, records)
    notes: list[str] = []
    rows = []
    for problem in table.problems:
        row = []
        for column in columns:
            value = value_in(records, problem, column, quantity, len(table.seeds))
            value = replace(value, printed=_printed(table, quantity, problem, column))
            row.append(replace(value, notes=_notes(plan, table, quantity, problem, column, notes)))
        rows.append(_with_best(row, better(quantity)))
    return Sheet(table, quantity, *_speaking(table.problems, columns, rows), tuple(notes))


def _speaking(
    problems: Sequence[Entry], columns: Sequence[Column], rows: Sequence[Sequence[Value]]
) -> tuple[tuple[Entry, ...], tuple[Column, ...], tuple[tuple[Value, ...], ...]]:
    """Without the rows and columns whose runs have ended and have no such number."""

    def silent(values: Sequence[Value]) -> bool:
        ended = any(value.ended for value in values)
        return ended and all(value.mean is None and not value.failed for value in values)

    kept = [k for k, row in enumerate(rows) if not silent(row)]
    across = [k for k in range(len(columns)) if not silent([row[k] for row in rows])]
    return (
        tuple(problems[k] for k in kept),
        tuple(columns[k] for k in across),
        tuple(tuple(rows[k][j] for j in across) for k in kept),
    )


def _printed(table: Table, quantity: str, problem: Entry, column: Column):
    place, method = table.printed.get(quantity), column.method.printed
    if not place or not problem.printed or not method:
        return None
    return printed_numbers().find(place, problem.printed, method, column.variant.printed)


def _notes(
    plan: Plan, table: Table, quantity: str, problem: Entry, column: Column, known: list[str]
) -> tuple[int, ...]:
    name, variant = column.method.name, column.variant.label
    called = [name, column.method.label, f"{name} {variant}", f"{column.method.label} {variant}"]
    found = []
    for note in plan.notes:
        if note.about(table.name, quantity, problem.label, called):
            if note.text not in known:
                known.append(note.text)
            found.append(known.index(note.text) + 1)
    return tuple(found)


def _with_best(row: Sequence[Value], sense: int) -> tuple[Value, ...]:
    """The row with its best value marked, where there are several that compete."""
    competing = [
        value.mean for value in row
        if value.mean is not None and not value.limit and not value.diverged
    ]  # fmt: skip
    if sense == 0 or len(competing) < 2:
        return tuple(row)
    best = max(competing) if sense > 0 else min(competing)
    return tuple(
        replace(value, best=value.mean == best and not value.limit and not value.diverged)
        for value in row
    )
