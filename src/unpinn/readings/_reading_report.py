"""What became of a file's rows, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any


@dataclass(frozen=True)
class Dropped:
    """Rows that were left out for one reason.

    Arguments:
        reason: the reason, as the end of a sentence "12 rows were left out because ...".
        count: how many.
        first: the numbers of the first few, as the file counts them.
    """

    reason: str
    count: int
    first: tuple[int, ...]


@dataclass(frozen=True)
class ReadingReport:
    """What was read from a file, what was left out, and why.

    Arguments:
        source: the file.
        format: in words.
        rows: how many it has.
        kept: how many readings came of them.
        columns: for each coordinate and quantity its column.
        units: for each that was converted, how.
        missing: for each quantity, how many of the kept readings lack it.
        dropped: rows left out, one entry a reason.
        sensors: how many different sensors there are, 0 where nobody said.
        ignored: columns that were not read.
        notes: what else a user should know.
        row_word: what rows are counted as.
    """

    source: str
    format: str
    rows: int
    kept: int
    columns: Mapping[str, str]
    units: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    sensors: int = 0
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    row_word: str = "row"

    @property
    def lines(self) -> tuple[str, ...]:
        """The report as sentences."""
        counted = f"{_many(self.kept, 'reading')} from {_many(self.rows, 'row')}"
        sensors = f" of {_many(self.sensors, 'sensor')}" if self.sensors else ""
        told = [f"{self.source} ({self.format}): {counted}{sensors}."]
        renamed = [f"{name} from {column!r}" for name, column in self.columns.items()]
        told.append(f"Read {', '.join(renamed)}.")
        if self.units:
            told.append("Units: " + ", ".join(f"{n} {u}" for n, u in self.units.items()) + ".")
        for name, count in self.missing.items():
            if count:
                verb = "lacks" if count == 1 else "lack"
                told.append(f"{_many(count, 'reading')} {verb} {name}.")
        told += [self._dropped_line(entry) for entry in self.dropped]
        if self.ignored:
            shown = ", ".join(map(repr, self.ignored[:10]))
            more = f" and {len(self.ignored) - 10} more" if len(self.ignored) > 10 else ""
            told.append(f"Not read: {shown}{more}.")
        told += [note[:1].upper() + note[1:] + "." for note in self.notes]
        return tuple(told)

    @property
    def rows_dropped(self) -> int:
        """How many rows were left out."""
        return sum(entry.count for entry in self.dropped)

    def text(self) -> str:
        """The report, a sentence a line."""
        return "\n".join(self.lines)

    def as_dict(self) -> dict[str, Any]:
        """As JSON's types."""
        return {
            "source": self.source,
            "format": self.format,
            "rows": self.rows,
            "kept": self.kept,
            "sensors": self.sensors,
            "columns": dict(self.columns),
            "units": dict(self.units),
            "missing": dict(self.missing),
            "dropped": [
                {"reason": d.reason, "count": d.count, "first": list(d.first)} for d in self.dropped
            ],
            "ignored": list(self.ignored),
            "notes": list(self.notes),
            "lines": list(self.lines),
        }

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return "<p>" + "<br>".join(escape(line) for line in self.lines) + "</p>"

    def _dropped_line(self, entry: Dropped) -> str:
        verb = "was" if entry.count == 1 else "were"
        shown = ", ".join(map(str, entry.first))
        more = ", ..." if entry.count > len(entry.first) else ""
        word = self.row_word if entry.count == 1 else f"{self.row_word}s"
        return (
            f"{_many(entry.count, 'row')} {verb} left out: {entry.reason} ({word} {shown}{more})."
        )


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
