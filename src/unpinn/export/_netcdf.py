"""Fields as labelled arrays, and as NetCDF."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn._files import write_bytes
from unpinn.export._grids import fields_on
from unpinn.training import Fit


def to_dataset(
    fit: Fit, counts: Mapping[str, int] | int = 50, what: Sequence[str] | str | None = None
) -> Any:
    """Fields on a regular grid as an xarray Dataset with named coordinates and units.

    The unknown numbers are in it too, as variables without axes; derivatives such as "u.xx" become
    variables called "u_xx".

    Arguments:
        fit: a fit.
        counts: points along each coordinate, or one count for all.
        what: fields, derivatives of them, or measurements; all fields unless told.
    """
    import xarray

    places, fields = fields_on(fit, counts, what)
    units = fit.problem.source.get("units", {})
    about = lambda name: {"units": str(units[name])} if name in units else {}  # noqa: E731
    names = {name: _variable(name) for name in (*fields, *fit.unknowns)}
    if len({*names.values(), *places}) < len(names) + len(places):
        raise UserError("two of the variables to be written would have one name; write fewer")
    variables: dict[str, Any] = {
        names[name]: (tuple(places), values, {**about(name), "long_name": name})
        for name, values in fields.items()
    }
    for name, value in fit.unknowns.items():
        variables[names[name]] = ((), value, {**about(name), "long_name": name})
    axes = {name: (name, values, about(name)) for name, values in places.items()}
    return xarray.Dataset(
        variables,
        axes,
        {
            "title": fit.problem.name,
            "source": f"unpinn {fit.versions.unpinn}, method {fit.method}, recipe {fit.recipe}, "
            f"seed {fit.seed}, status {fit.status.code}",
        },
    )


def write_netcdf(
    fit: Fit,
    path: Any,
    counts: Mapping[str, int] | int = 50,
    what: Sequence[str] | str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write `to_dataset` as NetCDF 4."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise UserError(f"{path} exists; choose another name, or pass overwrite=True")
    out = io.BytesIO()
    to_dataset(fit, counts, what).to_netcdf(out, engine="h5netcdf")
    write_bytes(path, out.getvalue())
    return path


def _variable(name: str) -> str:
    """A name that NetCDF and attribute access both take."""
    return "".join(mark if mark.isalnum() else "_" for mark in name).strip("_")
