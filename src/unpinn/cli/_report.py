"""`unpinn report`: the page of a run, written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

RunDirectory = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")]
ProblemFile = Annotated[
    Path | None, typer.Option("--problem", help="The problem file, if it is elsewhere now.")
]


def report(
    run: RunDirectory,
    out: Annotated[
        Path | None, typer.Option(help="Where to write instead of the run's directory.")
    ] = None,
    problem: ProblemFile = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an earlier report.")] = False,
) -> None:
    """Write a run's page (index.html), its tables of suspects (CSV) and its unknowns (JSON).

    Without --out they replace those that the run has written itself.
    """
    fit = read_fit(run, problem)
    page = fit.report(out or run, overwrite=force or out is None)
    typer.echo(f"wrote {page}")


def read_fit(run: Path, problem: Path | None) -> Any:
    """The fit that a run ended with."""
    from unpinn.runs import problem_of_run, read_run

    return read_run(run, problem_of_run(run, problem))[0]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)
