"""`unpinn problems`: what comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Name = Annotated[str | None, typer.Argument(help="One of them, to see more of it.")]
Picture = Annotated[
    Path | None,
    typer.Option(help="Draw its points into this file (.png, .pdf, .svg); NAME.png unless told."),
]
Drawn = Annotated[bool, typer.Option("--no-picture", help="Draw nothing.")]
PresetName = Annotated[str, typer.Option(help="Whose settings: paper or released.")]


def problems(
    name: Name = None,
    picture: Picture = None,
    no_picture: Drawn = False,
    preset: PresetName = "paper",
) -> None:
    """List the benchmark problems, or show one with its points as a picture."""
    from unpinn._errors import UserError
    from unpinn.cli._machine import prepare

    prepare()
    from unpinn.benchmarks import BENCHMARKS, benchmark
    from unpinn.cli._tables import print_table

    if name is None:
        if picture is not None:
            raise UserError("--picture needs a problem's name")
        body = [_line(benchmark(known, preset)) for known in BENCHMARKS]
        head = ["problem", "equation", "unknown", "readings", "errors of readings"]
        print_table(head, body, words=3)
        return
    if picture is not None and no_picture:
        raise UserError("--picture and --no-picture contradict each other; give one of them")
    bench = benchmark(name, preset)
    drawn = None if no_picture else _draw(bench, picture)
    for label, text in _facts(bench):
        typer.echo(f"{label:<12}{text}")
    if drawn is not None:
        typer.echo(f"{'picture':<12}{drawn}")


def _line(bench: Any) -> list[str]:
    return [
        bench.name, bench.equation, _unknowns(bench), str(bench.counts()["readings"]),
        str(bench.noise),
    ]  # fmt: skip


def _unknowns(bench: Any) -> str:
    fields = [f"{unknown.name} (a field)" for unknown in bench.problem.unknown_fields]
    return ", ".join([*bench.true_scalars, *fields]) or "-"


def _facts(bench: Any) -> list[tuple[str, str]]:
    problem = bench.problem
    domain = " x ".join(f"{n} in [{a:g}, {b:g}]" for n, (a, b) in problem.coordinates.items())
    counts = bench.counts()
    points = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    conditions = ", ".join(condition.name for condition in problem.conditions) or "none"
    truth = ", ".join(f"{name} = {value:g}" for name, value in bench.true_scalars.items())
    stages = ", then ".join(_in_words(stage) for stage in bench.protocol.stages)
    facts = [
        ("problem", f"{bench.name}: {bench.title}"),
        ("equation", bench.equation),
        ("domain", domain),
        ("fields", ", ".join(problem.fields)),
        ("unknown", _unknowns(bench)),
        ("truth", truth),
        ("conditions", conditions),
        ("read", f"{', '.join(bench.observed)}, {bench.noise}"),
        ("points", points),
        ("judged on", _judged(bench)),
        ("the paper", f"trains by {stages}"),
        ("try it", f"unpinn run {bench.name}"),
    ]
    return [(label, text) for label, text in facts if text]


def _judged(bench: Any) -> str:
    """The headline quantity, and what is judged beside it."""
    others = [quantity for quantity in (bench.state, *bench.beside) if quantity != bench.headline]
    beside = ", ".join(map(_quantity, others))
    return _quantity(bench.headline) + (f", and beside it {beside}" if beside else "")


def _quantity(quantity: Any) -> str:
    return f"{quantity.name} without its mean" if quantity.shifted else str(quantity.name)


def _in_words(stage: Any) -> str:
    kind, unit = {"adam": ("Adam", "epochs"), "lbfgs": ("L-BFGS", "iterations")}[stage.kind]
    alone = " on the readings alone" if tuple(stage.groups) == ("data",) else ""
    return f"{stage.length:,} {unit} of {kind}{alone}"


def _draw(bench: Any, asked: Path | None) -> str:
    """Draw the points, and say where; only a file that was named is written over."""
    import io

    from unpinn._errors import UserError
    from unpinn._files import write_bytes
    from unpinn.report._pictures import point_layout

    usual = bench.name if bench.preset == "paper" else f"{bench.name}-{bench.preset}"
    path = asked or Path(f"{usual}.png")
    if asked is None and path.exists():
        return f"{path} is there already; --picture {path} draws it anew"
    problem = bench.problem
    conditions = {
        condition.name: problem.condition_points(number, 0)
        for number, condition in enumerate(problem.conditions)
    }
    figure = point_layout(
        bench.reading_points(), problem.collocation_points(0), conditions,
        axes=tuple(problem.coordinates), domain=tuple(problem.coordinates.values()),
    )  # fmt: skip
    kind = path.suffix.removeprefix(".").lower()
    if kind not in figure.canvas.get_supported_filetypes():
        raise UserError(f"no picture can be drawn as {path.suffix!r}; use .png, .pdf or .svg")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    write_bytes(path, buffer.getvalue())
    return str(path)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("problems")(problems)
