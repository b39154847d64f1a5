"""Cells of a column as numbers, naming the first that is none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.readings._tables import Table
from unpinn.readings._units import parse_unit

_TIMESTAMP = re.compile(r"^\s*\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}|$)")
_WITH_UNIT = re.compile(r"^\s*[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?\s*(\D.*?)\s*$")
_MISSING_TEXTS = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>", "nat"})


def numbers(cells: Any, column: str, table: Table, begin: int) -> np.ndarray:
    """A column's cells as float64, NaN where missing.

    Arguments:
        cells: the chunk's cells.
        column: its name.
        table: where it comes from, for the sentence about a bad cell.
        begin: rows before the chunk.
    """
    array = np.asarray(cells)
    if array.dtype.kind == "c":
        raise UserError(f"{table.name}: column {column!r} holds complex numbers")
    if array.dtype.kind in "fiub":
        return _finite(array.astype(np.float64), column, table, begin)
    if array.dtype.kind == "M":
        return _seconds(array)
    texts = array.astype(object)
    parsed = _to_numbers(texts)
    bad = np.isnan(parsed) & ~_missing(texts)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise UserError(_sentence(texts[row], column, _place(table, begin + row), table))
    return _finite(parsed, column, table, begin)


def times(cells: Any) -> np.ndarray | None:
    """A column of timestamps as seconds since 1970, NaN where missing; None where it is none."""
    array = np.asarray(cells)
    if array.dtype.kind == "M":
        return _seconds(array)
    if array.dtype.kind in "fiubc" or not len(array):
        return None
    texts = array.astype(object)
    there = ~_missing(texts)
    if not there.any() or not all(_TIMESTAMP.match(str(text)) for text in texts[there]):
        return None
    import pandas as pd

    stamps = pd.to_datetime(pd.Series(texts[there]), errors="coerce", utc=True, format="ISO8601")
    if stamps.isna().any():
        return None
    seconds = np.full(len(texts), np.nan)
    plain = stamps.dt.tz_localize(None).to_numpy()
    seconds[there] = _seconds(plain)
    return seconds


def texts(cells: Any) -> np.ndarray:
    """A column of identifiers: as text, "" where missing, whole numbers without a decimal point."""
    array = np.asarray(cells)
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.round(array))
        return np.array(
            [
                str(int(value)) if is_whole else ("" if np.isnan(value) else str(value))
                for value, is_whole in zip(array.tolist(), whole.tolist(), strict=True)
            ],
            dtype=object,
        )
    if array.dtype.kind in "iub":
        return array.astype(str).astype(object)
    array = array.astype(object)
    gone = _missing(array)
    return np.array(
        ["" if g else str(v).strip() for v, g in zip(array, gone, strict=True)], dtype=object
    )


def _to_numbers(texts: np.ndarray) -> np.ndarray:
    import pandas as pd

    plain = [text.strip() if isinstance(text, str) else text for text in texts]
    try:
        parsed = pd.to_numeric(pd.Series(plain, dtype=object), errors="coerce")
    except OverflowError:
        # Whole numbers of more than 308 digits.
        huge = [isinstance(cell, int) and abs(cell) >> 1024 for cell in plain]
        plain = [float("inf") if big else cell for cell, big in zip(plain, huge, strict=True)]
        parsed = pd.to_numeric(pd.Series(plain, dtype=object), errors="coerce")
    return parsed.to_numpy(dtype=np.float64, na_value=np.nan)


def _missing(texts: np.ndarray) -> np.ndarray:
    def gone(cell: Any) -> bool:
        if cell is None or cell != cell:  # only a missing number differs from itself
            return True
        return isinstance(cell, str) and cell.strip().lower() in _MISSING_TEXTS

    found = []
    for cell in texts:
        try:
            found.append(bool(gone(cell)))
        except (TypeError, ValueError):  # pandas' NA refuses to be a truth, lists to be compared
            found.append(str(cell) == "<NA>")
    return np.array(found, bool)


def _seconds(array: np.ndarray) -> np.ndarray:
    plain = array.astype("datetime64[ns]")
    seconds = plain.astype(np.int64) / 1e9
    return np.where(np.isnat(plain), np.nan, seconds)


def _finite(values: np.ndarray, column: str, table: Table, begin: int) -> np.ndarray:
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise UserError(
            f"{table.name}, {_place(table, begin + row)}, column {column!r} reads infinity; leave "
            "the cell empty if the reading is missing"
        )
    return values


def _place(table: Table, row: int) -> str:
    return f"{table.row_word} {table.first_row + row}"


def _sentence(cell: Any, column: str, place: str, table: Table) -> str:
    shown = str(cell)
    shown = repr(shown if len(shown) <= 40 else shown[:37] + "...")
    where = f"{table.name}, {place}, column {column!r}: {shown}"
    if isinstance(cell, str) and _carries_unit(cell):
        return (
            f"{where} carries a unit of its own; write plain numbers and put one unit for all of "
            f"them in the header, as in '{column} [mm]'"
        )
    if _TIMESTAMP.match(str(cell)):
        return f"{where} is a date among numbers; only a time column that is all dates is read"
    return f"{where} is not a number; mend the cell, or leave it empty if the reading is missing"


def _carries_unit(cell: str) -> bool:
    """Whether a number is followed by what is a unit, and not by a slip of the keyboard."""
    found = _WITH_UNIT.match(cell)
    if found is None:
        return False
    try:
        parse_unit(found.group(1))
    except UserError:
        return False
    return True
