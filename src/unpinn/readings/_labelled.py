"""NetCDF files and xarray datasets, unrolled into columns a slab at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.readings._tables import CHUNK, Columns, Table


def open_netcdf(path: Path) -> Table:
    """Open a NetCDF file (version 4 by h5netcdf, version 3 by SciPy)."""
    import h5py
    import xarray

    with open(path, "rb") as file:
        start = file.read(4)
    engine = "scipy" if start[:3] == b"CDF" else "h5netcdf"
    try:
        if engine == "h5netcdf":
            # What cannot be opened at all would leave h5netcdf half made, which it complains of.
            with h5py.File(path, "r") as file:
                file.attrs.get("_nc3_strict")
        dataset = xarray.open_dataset(path, engine=engine)
    except MemoryError:
        raise UserError(f"{path} asks for more memory than there is; it may be damaged") from None
    except Exception as error:  # whatever the two libraries meet in a damaged file
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(f"{path} is not a readable NetCDF file ({told[0][:200]})") from None
    return wrap(dataset, path.name, close=True)


def wrap(dataset: Any, name: str, close: bool = False) -> Table:
    """A dataset as a table: every variable is a column, gridded ones are unrolled."""
    variables = {
        str(key): dataset[key]
        for key in (*dataset.coords, *dataset.data_vars)
        if dataset[key].ndim > 0
    }
    units = {
        key: str(variable.attrs["units"])
        for key, variable in variables.items()
        if isinstance(variable.attrs.get("units"), str)
    }

    def chunks(wanted: tuple[str, ...], text: tuple[str, ...]) -> Iterator[Columns]:
        try:
            yield from _unrolled({n: variables[n] for n in wanted}, name)
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"{name} cannot be read to its end ({error})") from None
        finally:
            if close:
                dataset.close()

    return Table(name, "NetCDF", tuple(variables), chunks, units=units)


def _unrolled(wanted: dict[str, Any], name: str) -> Iterator[Columns]:
    # The variable with the most axes is a reading's shape; coordinates are spread over it.
    widest = max(wanted.values(), key=lambda variable: variable.ndim)
    axes = tuple(widest.dims)
    for key, variable in wanted.items():
        other = [axis for axis in variable.dims if axis not in axes]
        if other:
            raise UserError(
                f"{name}: {key!r} runs over {other[0]!r}, which the other wanted variables do "
                "not; take them to common axes first"
            )
    length = widest.sizes[axes[0]]
    rest = max(1, int(np.prod([widest.sizes[axis] for axis in axes[1:]])))
    step = max(1, CHUNK // rest)
    sizes = {axis: widest.sizes[axis] for axis in axes}
    for begin in range(0, length, step):
        stop = min(begin + step, length)
        shape = (stop - begin, *(sizes[axis] for axis in axes[1:]))
        columns = {}
        for key, variable in wanted.items():
            part = variable
            if axes[0] in variable.dims:
                part = variable.isel({axes[0]: slice(begin, stop)})
            part = part.transpose(*(axis for axis in axes if axis in part.dims))
            values = np.asarray(part.values)
            index = tuple(slice(None) if axis in part.dims else None for axis in axes)
            columns[key] = np.broadcast_to(values[index], shape).reshape(-1)
        yield columns
