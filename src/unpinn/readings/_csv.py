"""CSV: which separator, which decimal mark, which encoding, where it starts; then in chunks."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn.readings._tables import CHUNK, Columns, Table

# Longer lines than this are no table of readings, and would fill memory before anybody noticed.
_LONGEST_LINE = 1 << 20
_MOST_COLUMNS = 10_000
MISSING = ("-", "--", "?", "missing", "Missing", "MISSING", "nodata", "none", "NONE", "na", "Na")


@dataclass(frozen=True)
class _Dialect:
    """How a file is written.

    Arguments:
        header: its column names.
        skipped: lines before them (comments, empty ones).
        separator: between cells.
        decimal: the decimal mark.
        encoding: of the text.
    """

    header: tuple[str, ...]
    skipped: int
    separator: str
    decimal: str
    encoding: str


def open_csv(path: Path, missing: tuple[str, ...] = ()) -> Table:
    """Open a CSV file; texts that mean "no value" are the usual ones and `missing`."""
    dialect = _sniff(path)

    def chunks(wanted: tuple[str, ...], text: tuple[str, ...]) -> Iterator[Columns]:
        for name in wanted:
            if dialect.header.count(name) > 1:
                raise UserError(f"{path.name} has two columns {name!r}; rename one")
        yield from _chunks(path, dialect, wanted, text, (*MISSING, *missing))

    notes = []
    if dialect.separator != ",":
        notes.append(f"cells are separated by {_spoken(dialect.separator)}")
    if dialect.decimal == ",":
        notes.append("the decimal mark is a comma")
    if dialect.encoding == "latin-1":
        notes.append("the text is not UTF-8; it was read as Latin-1")
    return Table(
        path.name, "CSV", dialect.header, chunks, "line", dialect.skipped + 2, notes=tuple(notes)
    )


def _spoken(separator: str) -> str:
    return {"\t": "tabs", ";": "semicolons", " ": "blanks", "|": "bars"}[separator]


def _open(path: Path) -> io.BufferedReader:
    try:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        raw = opener(path, "rb")
    except OSError as error:
        raise UserError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    return io.BufferedReader(_Guarded(raw, path.name))


def _too_long(name: str) -> str:
    return f"{name} has a line of more than a megabyte; is it a CSV file?"


class _Guarded(io.RawIOBase):
    """Bytes of a file, until a line turns out to be too long."""

    def __init__(self, raw: Any, name: str):
        self._raw = raw
        self._name = name
        self._line = 0

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._raw.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._raw.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{self._name} cannot be read to its end ({error})") from None
        buffer[: len(content)] = content
        pieces = content.split(b"\n")
        longest = max(map(len, pieces[1:-1]), default=0)
        self._line += len(pieces[0])
        if max(self._line, longest) > _LONGEST_LINE:
            raise UserError(_too_long(self._name))
        if len(pieces) > 1:
            self._line = len(pieces[-1])
        return len(content)


def _sniff(path: Path) -> _Dialect:
    with _open(path) as file:
        start = file.read(_LONGEST_LINE)
    encoding = _encoding(start, path)
    lines = start.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    skipped = next((k for k, line in enumerate(lines) if _is_content(line)), None)
    if skipped is None:
        raise UserError(f"{path.name} is empty")
    if skipped == len(lines) - 1 and len(start) == _LONGEST_LINE:
        raise UserError(_too_long(path.name))
    header = lines[skipped]
    body = [line for line in lines[skipped + 1 : skipped + 200] if line.strip()]
    separator = _separator(header)
    try:
        # Several blanks in a row separate like one.
        line = header if separator != " " else " ".join(header.split())
        cells = next(csv.reader([line], delimiter=separator))
    except csv.Error as error:
        raise UserError(f"{path.name} has no readable header ({error})") from None
    names = tuple(name.strip() for name in cells)
    if len(names) > _MOST_COLUMNS:
        raise UserError(f"{path.name} has {len(names)} columns; at most {_MOST_COLUMNS} are read")
    if all(_is_number(name) for name in names):
        raise UserError(
            f"{path.name} has no header: its first line is {header[:60]!r}; add a first line that "
            "names the columns"
        )
    commas = separator != "," and any(re.search(r"\d,\d", line) for line in body)
    return _Dialect(names, skipped, separator, "," if commas else ".", encoding)


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _encoding(start: bytes, path: Path) -> str:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" in start:
        raise UserError(f"{path.name} is not text, so it cannot be CSV")
    try:
        # The last few bytes may be the beginning of a character.
        start[: len(start) - 4 if len(start) == _LONGEST_LINE else None].decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig"


def _separator(header: str) -> str:
    counts = {mark: header.count(mark) for mark in (",", ";", "\t", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    if counts[best]:
        return best
    return " " if " " in header.strip() and "[" not in header and "(" not in header else ","


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return text == ""
    return True


def _chunks(path: Path, dialect: _Dialect, wanted, text, missing) -> Iterator[Columns]:
    import pandas as pd

    places = [dialect.header.index(name) for name in wanted]
    options: dict[str, Any] = {
        "sep": r"\s+" if dialect.separator == " " else dialect.separator,
        "decimal": dialect.decimal,
        "header": None,
        # All columns are parsed, since pandas overlooks rows of the wrong length otherwise.
        "names": range(len(dialect.header)),
        "skiprows": dialect.skipped + 1,
        "dtype": {p: str for p, n in zip(places, wanted, strict=True) if n in text},
        "na_values": list(missing),
        "index_col": False,
        "skip_blank_lines": False,
        "skipinitialspace": True,
        "chunksize": CHUNK,
    }
    with (
        warnings.catch_warnings(),
        _open(path) as file,
        io.TextIOWrapper(file, dialect.encoding, newline="") as lines,
    ):
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        try:
            with pd.read_csv(lines, **options) as reader:
                for part in reader:
                    yield {
                        name: part[place].to_numpy()
                        for name, place in zip(wanted, places, strict=True)
                    }
        except pd.errors.EmptyDataError:
            return
        except UnicodeDecodeError:
            raise UserError(f"{path.name} mixes encodings; save it as UTF-8") from None
        except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"{path.name} is not a regular table: {_spelled(error)}") from None


def _spelled(error: BaseException) -> str:
    """Pandas' sentence about a bad line, in this package's words."""
    told = " ".join(str(error).split())
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", told)
    if found:
        return f"line {found.group(2)} has {found.group(3)} cells and the header {found.group(1)}"
    if "Length of header or names does not match" in told:
        return "its rows have more cells than the header (are there commas inside numbers?)"
    found = re.search(r"EOF inside string starting at row (\d+)", told)
    if found:
        return f"a quotation mark opened in line {int(found.group(1)) + 1} is never closed"
    return told[:200]
