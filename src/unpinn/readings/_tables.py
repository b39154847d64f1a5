"""Opening a table, whatever its format, as chunks of named columns."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError

# Rows held at a time while reading: the memory that streaming needs beside the result.
CHUNK = 100_000
# NumPy archives cannot be read in parts, so what they unpack to is limited.
_LARGEST_ARCHIVE = 8 << 30

Columns = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Table:
    """A table that can be read once from top to bottom.

    Arguments:
        name: what errors call it.
        format: in words.
        columns: what it holds.
        chunks: given the wanted columns (and which of them are text), some rows at a time.
        row_word: what a row is called: "line" where the reader's user counts lines.
        first_row: the number of the first row in that count.
        units: the units that the file itself tells apart from its column names.
        notes: what was found out about the file.
    """

    name: str
    format: str
    columns: tuple[str, ...]
    chunks: Callable[[tuple[str, ...], tuple[str, ...]], Iterator[Columns]]
    row_word: str = "row"
    first_row: int = 1
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def open_table(source: Any, missing: tuple[str, ...] = ()) -> Table:
    """Open a file by its ending, or wrap a pandas or xarray object.

    Arguments:
        source: a path ending in .csv, .txt, .tsv, .dat, .parquet, .npz, .nc (CSV also with .gz), a
            pandas DataFrame or an xarray Dataset.
        missing: further texts that stand for a missing value.
    """
    from unpinn.readings import _csv, _labelled

    kind = type(source).__name__
    if kind == "DataFrame" and hasattr(source, "iloc"):
        return _frame(source)
    if kind == "Dataset" and hasattr(source, "data_vars"):
        return _labelled.wrap(source, "the xarray dataset")
    path = Path(source)
    try:
        there = path.exists()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UserError(f"the file name {str(path)[:60]!r}... cannot be looked up: {why}") from None
    if not there:
        raise UserError(f"there is no file {path}")
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file in it")
    name = path.name.removesuffix(".gz")
    suffix = Path(name).suffix.lower()
    if suffix in (".csv", ".txt", ".tsv", ".dat"):
        return _csv.open_csv(path, missing)
    readers = {
        ".parquet": _parquet,
        ".pq": _parquet,
        ".npz": _npz,
        ".nc": _labelled.open_netcdf,
        ".nc4": _labelled.open_netcdf,
        ".cdf": _labelled.open_netcdf,
        ".h5": _labelled.open_netcdf,
    }
    if suffix not in readers or name != path.name:
        raise UserError(
            f"{path} has the ending {suffix!r}, which is not a table this package reads; convert "
            "it to .csv, .parquet, .npz or .nc"
        )
    return readers[suffix](path)


def _frame(frame: Any) -> Table:
    def chunks(wanted: tuple[str, ...], text: tuple[str, ...]) -> Iterator[Columns]:
        for begin in range(0, len(frame), CHUNK):
            part = frame.iloc[begin : begin + CHUNK]
            yield {name: part[name].to_numpy() for name in wanted}

    names = [str(name) for name in frame.columns]
    plain = frame.set_axis(names, axis=1)
    frame = plain
    return Table("the data frame", "pandas data frame", tuple(names), chunks)


def _parquet(path: Path) -> Table:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            # Names are decoded only when they are asked for.
            names = tuple(schema.names)
            stored = {name: (schema.field(k).metadata or {}) for k, name in enumerate(names)}
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise UserError(f"{path} is not a readable Parquet file ({_first_line(error)})") from None
    units = {
        name: about[b"units"].decode("utf-8", "replace")
        for name, about in stored.items()
        if b"units" in about
    }

    def chunks(wanted: tuple[str, ...], text: tuple[str, ...]) -> Iterator[Columns]:
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(CHUNK, columns=list(dict.fromkeys(wanted))):
                    yield {name: _from_arrow(batch.column(name)) for name in wanted}
        except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
            raise UserError(f"{path} cannot be read to its end ({_first_line(error)})") from None

    return Table(path.name, "Parquet", names, chunks, units=units)


def _from_arrow(column: Any) -> np.ndarray:
    import pyarrow.types

    if pyarrow.types.is_nested(column.type):
        # The None keeps NumPy from making lists of one length into a matrix.
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    return column.to_numpy(zero_copy_only=False)


def _npz(path: Path) -> Table:
    if not zipfile.is_zipfile(path):
        raise UserError(f"{path} is not a NumPy archive as numpy.savez writes it")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(item.file_size for item in archive.infolist())
        if size > _LARGEST_ARCHIVE:
            raise UserError(
                f"{path} unpacks to {size / 2**30:.0f} GiB; convert it to Parquet, which is read "
                "in parts"
            )
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        strange = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
        if strange:
            raise UserError(f"{path} is not a NumPy archive: {strange[0]!r} in it is no array")
    except UserError:
        raise
    except Exception as error:  # zip, zlib and NumPy each have errors of their own
        told = _first_line(error)
        if "allow_pickle" in told:
            told = "it holds Python objects, which are never loaded"
        raise UserError(f"{path} is not a readable NumPy archive ({told})") from None
    columns: Columns = {}
    for name, array in arrays.items():
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim == 1:
            columns[name] = array

    def chunks(wanted: tuple[str, ...], text: tuple[str, ...]) -> Iterator[Columns]:
        lengths = {name: len(columns[name]) for name in wanted}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise UserError(f"{path.name}: the columns differ in length ({told})")
        for begin in range(0, max(lengths.values(), default=0), CHUNK):
            yield {name: columns[name][begin : begin + CHUNK] for name in wanted}

    skipped = sorted(set(arrays) - set(columns))
    notes = (f"arrays that are no columns were left out: {', '.join(skipped)}",) if skipped else ()
    return Table(path.name, "NumPy archive", tuple(columns), chunks, notes=notes)


def _first_line(error: BaseException) -> str:
    told = str(error).strip().splitlines()
    return told[0][:200] if told else type(error).__name__
