"""`unpinn data`: data sets that do not come with the package."""

from __future__ import annotations

import typer

data = typer.Typer(
    help="Data sets that do not come with the package.", no_args_is_help=True,
)  # fmt: skip


@data.callback()
def _data() -> None:
    """Keep `fetch` a word of its own."""


@data.command("fetch")
def fetch(name: str = typer.Argument(help="Which: wake.")) -> None:
    """Download a data set and check it."""
    from unpinn._errors import UserError

    if name != "wake":
        raise UserError(f"there is no data set {name!r} to fetch (there is wake)")
    from unpinn.benchmarks import fetch_wake

    typer.echo(f"the wake is in {fetch_wake()}; nsinv uses it from now on")


def add_to(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(data, name="data")
