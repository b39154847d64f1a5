"""`unpinn study`: many runs, their tables and pictures, with one command."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpinn._errors import UserError
from unpinn.cli._app import FAILED, INTERRUPTED

if TYPE_CHECKING:
    from unpinn.study import Choice, Executor, Graph, Store, Summary

Plans = Annotated[
    list[str],
    typer.Argument(metavar="STUDY...", help="paper, ours, ablation, or study files (.toml)."),
]
BudgetName = Annotated[
    str, typer.Option(help="quick: 2 % of the epochs, one seed, main tables; short: 20 %; paper.")
]
Seeds = Annotated[str, typer.Option(help="Which, separated by commas; the study's unless told.")]
Problems = Annotated[str, typer.Option(help="Only these, separated by commas.")]
Methods = Annotated[str, typer.Option(help="Only these, separated by commas.")]
Tables = Annotated[str, typer.Option(help="Only these, separated by commas.")]
StoreFolder = Annotated[Path, typer.Option("--store", help="Where runs are kept.")]
Workers = Annotated[
    int | None, typer.Option(help="Processes on this machine, or Slurm jobs; one a core.")
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use a Dask scheduler's workers.")
]
Slurm = Annotated[bool, typer.Option("--slurm", help="Use Slurm jobs, through dask-jobqueue.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would be run, and its cost.")]
Report = Annotated[
    Path | None, typer.Option(help="Where tables, pictures and the page go; STORE/report-...")
]
OnlyReport = Annotated[
    bool, typer.Option("--only-report", help="Run nothing; report on what is there.")
]
Take = Annotated[
    list[Path] | None,
    typer.Option(metavar="STORE", help="First take over what other stores have, without weights."),
]
KeepWeights = Annotated[bool, typer.Option(help="Keep every network in the store.")]


def study(
    plans: Plans,
    budget: BudgetName = "paper",
    seeds: Seeds = "",
    problems: Problems = "",
    methods: Methods = "",
    tables: Tables = "",
    store: StoreFolder = Path("studies"),
    workers: Workers = None,
    scheduler: Scheduler = None,
    slurm: Slurm = False,
    dry_run: DryRun = False,
    report: Report = None,
    only_report: OnlyReport = False,
    take: Take = None,
    keep_weights: KeepWeights = True,
) -> None:
    """Run a study: everything that its store lacks, then its tables, pictures and page.

    A study that was interrupted, in whatever way, goes on where it stopped when the same command
    is repeated; runs that are done are never done again.
    """
    _check(workers, scheduler, slurm, dry_run, only_report, bool(take))
    from unpinn.cli._machine import prepare

    prepare()
    from unpinn.report._study_report import check_study_report
    from unpinn.study import Choice, Store, graph_of, read_plan

    choice = Choice(
        budget, tuple(map(_seed, _names(seeds))), _names(problems), _names(methods), _names(tables)
    )
    graph = graph_of([read_plan(name) for name in plans], choice)
    kept = Store(store)
    where = report or store / f"report-{'-'.join(Path(p).stem for p in plans)}-{budget}"
    check_study_report(graph, where)
    for line in _notes(graph, choice):
        typer.echo(line, err=True)
    for other in take or ():
        count = kept.take(Store(other), graph.nodes, graph.drawn)
        typer.echo(f"{count} runs taken over from {other}", err=True)
    if dry_run:
        _tell_plan(graph, kept, choice, workers)
        return
    summary = None if only_report else _run(graph, kept, workers, scheduler, slurm, keep_weights)
    if not only_report:
        _examine(graph, kept)
    _report(graph, kept, where, budget)
    if summary is not None:
        _tell_end(graph, summary)


def _check(
    workers: int | None,
    scheduler: str | None,
    slurm: bool,
    dry_run: bool,
    only_report: bool,
    take: bool,
) -> None:
    if workers is not None and workers < 1:
        raise UserError(f"--workers must be 1 or more, not {workers}")
    if scheduler is not None and slurm:
        raise UserError("--scheduler and --slurm both say who works; give one of them")
    if scheduler is not None and workers is not None:
        raise UserError("a scheduler has its own workers; leave out --workers or --scheduler")
    if dry_run and only_report:
        raise UserError("--dry-run writes nothing and --only-report runs nothing; give one of them")
    if dry_run and take:
        raise UserError("--dry-run writes nothing, so it cannot --take anything; leave one out")


def _run(
    graph: Graph, store: Store, workers: int | None, scheduler: str | None, slurm: bool, keep: bool
) -> Summary:
    from unpinn.study import run_study, watch_for

    executor = _executor(workers, scheduler, slurm)
    try:
        return run_study(graph, store, executor, keep_weights=keep, watch=watch_for())
    except KeyboardInterrupt:
        again = shlex.join(["unpinn", *sys.argv[1:]])
        typer.echo(f"\nunpinn: interrupted; `{again}` goes on where it stopped", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _examine(graph: Graph, store: Store) -> None:
    """Ask the networks that stand what tables want to know of them."""
    from unpinn.study import examine

    examine(graph, store, lambda line: typer.echo(f"asked {line}", err=True))


def _executor(workers: int | None, scheduler: str | None, slurm: bool) -> Executor:
    from unpinn.study import InProcess, LocalProcesses, connect

    if scheduler is not None or slurm:
        return connect(scheduler, slurm, workers)
    if workers is not None:
        return LocalProcesses(workers)
    import jax

    # Accelerators are shared out within one process; cores among several.
    return InProcess() if jax.default_backend() != "cpu" else LocalProcesses()


def _notes(graph: Graph, choice: Choice) -> list[str]:
    """What has to be known of a study at less than the full budget."""
    from unpinn.training import BUDGETS

    if choice.budget == "paper":
        return []
    share = f"{100 * BUDGETS[choice.budget]:g} %"
    lines = [f"budget {choice.budget}: {share} of every training's epochs, a check, not a result"]
    there = {(plan.name, table.name) for plan, table in graph.tables}
    plans = {plan.name: plan for plan, _ in graph.tables}.values()
    left = [t.name for plan in plans for t in plan.tables if (plan.name, t.name) not in there]
    if left and not choice.tables:
        lines.append(f"left out at this budget: {', '.join(left)} (--tables asks for them)")
    return lines


def _tell_plan(graph: Graph, store: Store, choice: Choice, workers: int | None) -> None:
    from unpinn.cli._tables import print_table
    from unpinn.study import LocalProcesses, dry_run

    plan = dry_run(graph, store)
    print_table(plan.head, plan.rows, f"budget {choice.budget}, {len(graph.nodes)} runs")
    count = workers or LocalProcesses().workers
    for line in plan.told(count):
        typer.echo(line)


def _report(graph: Graph, store: Store, where: Path, budget: str) -> None:
    from unpinn.report._study_report import write_study_report

    command = shlex.join(["unpinn", *sys.argv[1:]])
    page = write_study_report(graph, store, where, budget=budget, command=command)
    typer.echo(f"the report is {page}")


def _tell_end(graph: Graph, summary: Summary) -> None:
    for address, reason in summary.failed.items():
        typer.echo(f"unpinn: {graph.labels(address)} failed: {reason}", err=True)
    if summary.failed:
        raise typer.Exit(FAILED)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _seed(text: str) -> int:
    if not text.isdigit():
        raise UserError(f"--seeds takes whole numbers separated by commas, not {text!r}")
    return int(text)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("study")(study)
