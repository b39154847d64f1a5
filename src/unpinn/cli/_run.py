"""`unpinn run`: one method on one problem, from settings to pictures."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpinn.cli._app import FAILED, INTERRUPTED

if TYPE_CHECKING:
    from unpinn.runs import Posed, Run

Name = Annotated[
    str, typer.Argument(metavar="NAME_OR_FILE", help="A benchmark, or a problem file (.py).")
]
Data = Annotated[Path | None, typer.Option(help="The readings, for a problem file.")]
MethodName = Annotated[str, typer.Option(help="How noise is survived: ppinn, pinn, huber, ...")]
RecipeName = Annotated[str, typer.Option(help="How to unlearn: default or paper.")]
PresetName = Annotated[str, typer.Option(help="Whose benchmark settings: paper or released.")]
Seed = Annotated[int, typer.Option(help="Of everything random, the noise included.")]
Epochs = Annotated[int | None, typer.Option(help="The baseline's epochs in all.")]
Budget = Annotated[str, typer.Option(help="Or a share of the epochs: quick, short or paper.")]
ProtocolName = Annotated[
    str, typer.Option(help="How the baseline is trained: default, or as the paper does.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method; may be repeated."),
]
High = Annotated[float | None, typer.Option(help="Level of the bad readings' errors.")]
Low = Annotated[float | None, typer.Option(help="Level of the good readings' errors.")]
Share = Annotated[float | None, typer.Option(help="Share of bad readings.")]
Kind = Annotated[str | None, typer.Option(help="gaussian, student, biased or clustered.")]
Out = Annotated[Path | None, typer.Option(help="The run's directory; runs/NAME-... unless told.")]
Force = Annotated[bool, typer.Option("--force", help="Discard an earlier run that is there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but mistakes.")]
Json = Annotated[bool, typer.Option("--json", help="Print the records as JSON and nothing else.")]
Threads = Annotated[int | None, typer.Option(help="Keep to so many threads.")]
Pictures = Annotated[bool, typer.Option(help="Draw pictures.")]


def run(
    problem: Name,
    data: Data = None,
    method: MethodName = "ppinn",
    recipe: RecipeName = "default",
    protocol: ProtocolName = "default",
    preset: PresetName = "paper",
    seed: Seed = 42,
    budget: Budget = "paper",
    epochs: Epochs = None,
    settings: Settings = None,
    noise_high: High = None,
    noise_low: Low = None,
    noise_share: Share = None,
    noise_kind: Kind = None,
    out: Out = None,
    force: Force = False,
    pictures: Pictures = True,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train on a problem, find the readings not to trust, and unlearn them.

    An interrupted run goes on where it stopped when the same command is repeated.
    """
    from unpinn.cli._machine import prepare

    prepare(threads)
    from unpinn.cli._progress import progress_lines
    from unpinn.runs import Configuration, check_method, execute, parse_options, pose

    levels = {"high": noise_high, "low": noise_low, "share": noise_share, "kind": noise_kind}
    asked = Configuration(
        problem, method, recipe, protocol, preset, seed, budget, epochs,
        options=parse_options(settings or []),
        noise={name: value for name, value in levels.items() if value is not None},
        data=None if data is None else str(data),
    )  # fmt: skip
    posed = pose(asked)
    check_method(posed)
    silent = quiet or as_json
    if not silent:
        typer.echo(describe(posed))
    directory = out or Path("runs") / asked.name
    try:
        with progress_lines(silent) as progress:
            done = execute(
                posed, directory, force=force, watcher=progress, announce=progress.announce,
                pictures=pictures,
            )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(f"\nunpinn: interrupted; {again()} goes on where it stopped", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _tell(done, silent, as_json)
    if not done.fit.status.good:
        typer.echo(f"unpinn: {failure(done.fit.status.code, done.fit.status.reason)}", err=True)
        raise typer.Exit(FAILED)


def describe(posed: Posed) -> str:
    """What is about to be run, in two or three lines."""
    lines = [f"{posed.problem.name}: {', '.join(posed.problem.equations)}"]
    if posed.benchmark is not None and posed.readings is not None:
        lines = [f"{posed.benchmark.title}: {posed.benchmark.equation}"]
        lines.append(f"{len(posed.observations)} readings, errors {posed.readings.noise}")
    elif posed.reading_report is not None:
        lines.append(str(posed.reading_report))
    else:
        lines.append(f"{len(posed.observations)} readings")
    return "\n".join(lines)


def failure(code: str, reason: str) -> str:
    """What is said of a fit that cannot be trusted."""
    return f"the training {code} ({reason}); its numbers are not an answer"


def again() -> str:
    """The command that was given, to be repeated."""
    return f"`{shlex.join(['unpinn', *sys.argv[1:]])}`"


def _tell(done: Run, silent: bool, as_json: bool) -> None:
    if as_json:
        print_json(done.records)
    if silent:
        return
    from unpinn.cli._tables import print_comparison

    asked = done.posed.configuration
    print_comparison(done.records, f"\n{done.posed.problem.name}, seed {asked.seed}")
    partition = done.fit.partition
    if partition is not None:
        typer.echo(f"partition: {partition.rule}")
    if done.fit.status.code == "kept":
        typer.echo(done.fit.status.reason)
    for name in done.fit.details.get("at_bound", []):
        typer.echo(f"warning: {name} ended at a bound, so the bound decided the value")
    typer.echo(where(done.directory))


def where(directory: Path | None, first: str = "index.html") -> str:
    """Where the results are, and which file to open first."""
    page = Path(directory or "") / first
    return f"everything is in {directory}" + (f"; open {page}" if page.exists() else "")


def print_json(records: Any) -> None:
    """Print what a script may read."""
    typer.echo(json.dumps(records, indent=2, allow_nan=False))


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)
