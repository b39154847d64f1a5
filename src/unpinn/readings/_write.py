"""Readings to a file, so that `read_observations` gives the same ones back."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn._files import write_bytes
from unpinn.problem import Observations, Problem
from unpinn.readings._units import parse_unit

_ROWS_AT_A_TIME = 50_000


def write_observations(
    path: Any,
    observations: Observations,
    problem: Problem,
    units: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write readings as CSV, Parquet, NumPy (.npz) or NetCDF, by the path's ending.

    Arguments:
        path: where to.
        observations: the readings.
        problem: what its coordinates are called.
        units: the unit that each coordinate or quantity is in, to be written beside its name.
        overwrite: whether a file of that name may be replaced.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise UserError(f"{path} exists; choose another name, or pass overwrite=True")
    columns = _columns(observations, problem)
    units = dict(units or {})
    for name, unit in units.items():
        if name not in columns:
            raise UserError(f"units tells {name!r}, which is not written ({', '.join(columns)})")
        parse_unit(unit)
    writers = {".csv": _csv, ".parquet": _parquet, ".npz": _npz, ".nc": _netcdf}
    if path.suffix not in writers:
        raise UserError(f"{path} must end in one of {', '.join(writers)}")
    write_bytes(path, writers[path.suffix](columns, units))
    return path


def _columns(observations: Observations, problem: Problem) -> dict[str, np.ndarray]:
    columns = dict(zip(problem.coordinates, observations.points.T, strict=True))
    columns |= dict(zip(observations.quantities, observations.values.T, strict=True))
    for name, extra in (("sigma", observations.sigma), ("sensor", observations.sensor)):
        if extra is not None:
            if name in columns:
                raise UserError(f"the problem has a {name!r} of its own beside the readings'")
            columns[name] = extra
    return columns


def _csv(columns: dict[str, np.ndarray], units: dict[str, str]) -> bytes:
    import pandas as pd

    out = io.StringIO()
    named = {f"{n} [{units[n]}]" if n in units else n: c for n, c in columns.items()}
    frame = pd.DataFrame(named)
    frame.to_csv(out, index=False, lineterminator="\n", chunksize=_ROWS_AT_A_TIME)
    return out.getvalue().encode()


def _parquet(columns: dict[str, np.ndarray], units: dict[str, str]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    arrays = [pyarrow.array(column, from_pandas=True) for column in columns.values()]
    fields = [
        pyarrow.field(name, array.type, metadata={"units": units[name]} if name in units else None)
        for name, array in zip(columns, arrays, strict=True)
    ]
    out = io.BytesIO()
    table = pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields))
    pyarrow.parquet.write_table(table, out)
    return out.getvalue()


def _npz(columns: dict[str, np.ndarray], units: dict[str, str]) -> bytes:
    out = io.BytesIO()
    named: dict[str, Any] = {
        f"{n} [{units[n]}]" if n in units else n: c.astype("U") if c.dtype.kind == "O" else c
        for n, c in columns.items()
    }
    np.savez_compressed(out, **named)
    return out.getvalue()


def _netcdf(columns: dict[str, np.ndarray], units: dict[str, str]) -> bytes:
    import xarray

    dataset = xarray.Dataset(
        {
            name: (
                "reading",
                column.astype("U") if column.dtype.kind in "OU" else column,
                {"units": units[name]} if name in units else {},
            )
            for name, column in columns.items()
        }
    )
    out = io.BytesIO()
    dataset.to_netcdf(out, engine="h5netcdf")
    return out.getvalue()
