"""The program: its commands, and what it says when something goes wrong."""

from __future__ import annotations

import pkgutil
import traceback
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from unpinn._errors import UserError
from unpinn._version import __version__

MISTAKE, FAILED, INTERRUPTED = 2, 3, 130


class _Program(TyperGroup):
    """A group of commands in which a user's mistake is one sentence, not a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            if error.__cause__ is not None:
                # The user's own code failed: its traceback is theirs to read.
                typer.echo("".join(traceback.format_exception(error.__cause__)), err=True, nl=False)
            typer.echo(f"unpinn: {error}", err=True)
            raise typer.Exit(MISTAKE) from None
        except KeyboardInterrupt:
            typer.echo("unpinn: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="unpinn",
    cls=_Program,
    help="Inverse problems from noisy readings: recover fields and coefficients, find the readings "
    "not to trust, and make the network unlearn them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"unpinn {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    pass


for _found in pkgutil.iter_modules([str(Path(__file__).parent)]):
    if _found.name in ("__main__", "_app"):
        continue
    # Helpers of commands stand beside them and have no command to add.
    _add = getattr(import_module(f"unpinn.cli.{_found.name}"), "add_to", None)
    if _add is not None:
        _add(app)


def main() -> None:
    """Run the program with the arguments of the command line."""
    app()
