"""`unpinn export`: a run's fields, unknowns, or program, as a file for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpinn._errors import UserError
from unpinn.cli._report import ProblemFile, RunDirectory, read_fit

_GRID = 50


def export(
    run: RunDirectory,
    file: Annotated[
        Path,
        typer.Argument(
            help="What to write: .nc (NetCDF), .vti or .pvd (VTK), .json (unknowns), .mlir "
            "(StableHLO text), .program (for load_program)."
        ),
    ],
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COUNT", help=f"Points along a coordinate; {_GRID} unless told."),
    ] = None,
    what: Annotated[
        str | None, typer.Option(help="Fields or derivatives, separated by commas, as in u,u.xx.")
    ] = None,
    problem: ProblemFile = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file.")] = False,
) -> None:
    """Write the fields, the unknowns or the network of a run for other tools."""
    from unpinn import export as writers

    kind = file.suffix.lower()
    known = (".nc", ".vti", ".pvd", ".json", ".mlir", ".program")
    if kind not in known:
        raise UserError(f"{file} must end in one of {', '.join(known)}")
    if kind not in (".nc", ".vti", ".pvd") and grid:
        raise UserError(f"--grid is for fields on a grid; {file} holds none")
    fit = read_fit(run, problem)
    names = None if what is None else tuple(name.strip() for name in what.split(","))
    counts = _counts(fit, grid or [])
    written: Any = file
    if kind == ".nc":
        writers.write_netcdf(fit, file, counts, names, overwrite=force)
    elif kind in (".vti", ".pvd"):
        written = writers.write_vtk(fit, file, counts, names, overwrite=force)[0]
    elif kind == ".json":
        from unpinn.report import intervals_of

        writers.write_unknowns(fit, file, *intervals_of(fit), overwrite=force)
    else:
        writers.write_program(fit, file, names, overwrite=force)
    typer.echo(f"wrote {written}")


def _counts(fit: Any, settings: list[str]) -> dict[str, int]:
    counts = dict.fromkeys(fit.problem.coordinates, _GRID)
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not text.strip().isdigit():
            raise UserError(f"--grid takes NAME=COUNT, as in x=100, not {setting!r}")
        if name.strip() not in counts:
            raise UserError(f"--grid tells {name.strip()!r}, which is none of {', '.join(counts)}")
        counts[name.strip()] = int(text)
    return counts


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)
