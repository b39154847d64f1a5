"""`unpinn compare`: several methods on the same readings, in one table and one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpinn._errors import UserError
from unpinn.cli import _run
from unpinn.cli._app import FAILED, INTERRUPTED

if TYPE_CHECKING:
    from unpinn.runs import Configuration, Posed, Run
    from unpinn.training import Fit

# The method whose network others start from.
_PLAIN = "pinn"

# On a file of one's own, all but the last, which must be told the true noise.
_USUAL = ("pinn", "ppinn", "huber", "mixture", "oracle")

MethodNames = Annotated[
    str | None,
    typer.Option(help=f"Which, separated by commas; {','.join(_USUAL)} unless told."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="METHOD.NAME=VALUE", help="A setting of one of the methods."),
]


def compare(
    problem: _run.Name,
    methods: MethodNames = None,
    data: _run.Data = None,
    recipe: _run.RecipeName = "default",
    protocol: _run.ProtocolName = "default",
    preset: _run.PresetName = "paper",
    seed: _run.Seed = 42,
    budget: _run.Budget = "paper",
    epochs: _run.Epochs = None,
    settings: Settings = None,
    noise_high: _run.High = None,
    noise_low: _run.Low = None,
    noise_share: _run.Share = None,
    noise_kind: _run.Kind = None,
    out: _run.Out = None,
    force: _run.Force = False,
    pictures: _run.Pictures = True,
    threads: _run.Threads = None,
    quiet: _run.Quiet = False,
    as_json: _run.Json = False,
) -> None:
    """Run several methods on the same readings and set them side by side.

    Every method has a run directory of its own inside --out; those that are finished are not run
    again, and an interrupted comparison goes on where it stopped.
    """
    from unpinn.cli._machine import prepare

    prepare(threads)
    from unpinn.runs import Configuration

    names = _names(problem, methods)
    options = options_by_method(settings or [], names)
    levels = {"high": noise_high, "low": noise_low, "share": noise_share, "kind": noise_kind}
    asked = [
        Configuration(
            problem, name, recipe, protocol, preset, seed, budget, epochs, options[name],
            noise={key: value for key, value in levels.items() if value is not None},
            data=None if data is None else str(data),
        )
        for name in names
    ]  # fmt: skip
    posed = _posed(asked)
    directory = out or Path("runs") / asked[0].name.replace(f"-{names[0]}-", "-compare-")
    _claim(directory, force)
    silent = quiet or as_json
    try:
        runs = _all(posed, directory, force, pictures, silent)
    except KeyboardInterrupt:
        typer.echo(f"\nunpinn: interrupted; {_run.again()} goes on where it stopped", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _tell({name: runs[name] for name in names}, directory, pictures, silent, as_json)


def _names(problem: str, methods: str | None) -> list[str]:
    """Which methods are compared."""
    if methods is None:
        return list(_USUAL[:-1] if problem.endswith(".py") else _USUAL)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names or len(set(names)) != len(names):
        raise UserError(f"--methods needs different names separated by commas, not {methods!r}")
    return names


def _claim(directory: Path, force: bool) -> None:
    """Refuse a directory of other things; the mark says that it is a comparison's."""
    from unpinn._files import write_text

    mark = directory / ".comparison"
    if directory.is_dir() and any(directory.iterdir()) and not mark.exists() and not force:
        raise UserError(
            f"{directory} holds other files; choose another directory with --out, or write beside "
            "them with --force"
        )
    write_text(mark, "made by unpinn compare\n")


def options_by_method(settings: list[str], names: list[str]) -> dict[str, dict[str, Any]]:
    """Settings such as "huber.width=0.1", sorted by method."""
    from unpinn.runs import parse_options

    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in parse_options(settings).items():
        method, dot, option = key.partition(".")
        if not dot or method not in found:
            raise UserError(
                f"--set {key}=... must begin with one of the methods, as in {names[0]}.NAME=VALUE"
            )
        found[method][option] = value
    return found


def _posed(asked: list[Configuration]) -> dict[str, Posed]:
    """Every method's run, refused before any work; the plain network first, where one is needed."""
    from dataclasses import replace

    from unpinn.runs import check_method, pose

    posed = {configuration.method: pose(configuration) for configuration in asked}
    needed = [check_method(each).needs_baseline for each in posed.values()]
    if any(needed) and _PLAIN not in posed:
        posed[_PLAIN] = pose(replace(asked[0], method=_PLAIN, options={}))
    return dict(sorted(posed.items(), key=lambda item: item[0] != _PLAIN))


def _all(
    posed: dict[str, Posed], directory: Path, force: bool, pictures: bool, silent: bool
) -> dict[str, Run]:
    from unpinn.cli._progress import progress_lines
    from unpinn.runs import execute_or_read

    if not silent:
        typer.echo(_run.describe(next(iter(posed.values()))))
    runs: dict[str, Run] = {}
    baseline: Fit | None = None
    with progress_lines(silent) as progress:
        for name, each in posed.items():
            runs[name] = execute_or_read(
                each, directory / name, force=force, baseline=baseline, watcher=progress,
                announce=progress.announce, pictures=pictures,
            )  # fmt: skip
            if name == _PLAIN and not each.configuration.options:
                baseline = runs[name].fit
    return runs


def _tell(
    runs: dict[str, Run], directory: Path, pictures: bool, silent: bool, as_json: bool
) -> None:
    from unpinn._files import write_json
    from unpinn.cli._tables import print_methods
    from unpinn.runs import write_comparison

    records = [run.records[-1] for run in runs.values()]
    write_json(directory / "metrics.json", records)
    first = next(iter(runs.values()))
    if pictures:
        fits = {name: run.fit for name, run in runs.items()}
        write_comparison(directory / "comparison.png", fits, first.posed)
    if as_json:
        _run.print_json(records)
    if not silent:
        title = f"\n{first.posed.problem.name}, seed {first.posed.configuration.seed}"
        print_methods(records, title)
        typer.echo(_run.where(directory, "comparison.png"))
    bad = [run.fit for run in runs.values() if not run.fit.status.good]
    for fit in bad:
        told = _run.failure(fit.status.code, fit.status.reason)
        typer.echo(f"unpinn: {fit.method}: {told}", err=True)
    if bad:
        raise typer.Exit(FAILED)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)
