"""`unpinn new`: a starter for a problem of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpinn._errors import UserError


def new(
    file: Annotated[Path, typer.Argument(help="What to write, as in beam.py.")],
    force: Annotated[bool, typer.Option("--force", help="Write over a file.")] = False,
) -> None:
    """Write a commented starter for a problem of your own."""
    from unpinn.readings import write_starter

    if file.suffix != ".py":
        raise UserError(f"a problem file is Python and ends in .py; try {file.with_suffix('.py')}")
    if file.exists() and not force:
        raise UserError(f"{file} is there already; choose another name, or write over it (--force)")
    write_starter(file, overwrite=force)
    typer.echo(f"wrote {file}; edit it, then: unpinn run {file} --data READINGS.csv")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("new")(new)
