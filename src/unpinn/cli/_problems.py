"""`unpinn problems`: what comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Name = Annotated[str | None, typer.Argument(help="One of them, to see more of it.")]
Picture = Annotated[Path | None, typer.Option(help="Draw its points into this file (.png, .pdf).")]
PresetName = Annotated[str, typer.Option(help="Whose settings: paper or released.")]


def problems(name: Name = None, picture: Picture = None, preset: PresetName = "paper") -> None:
    """List the benchmark problems, or show one."""
    from unpinn._errors import UserError
    from unpinn.cli._machine import prepare

    prepare()
    from unpinn.benchmarks import BENCHMARKS, benchmark
    from unpinn.cli._tables import print_table

    if name is None:
        if picture is not None:
            raise UserError("--picture needs a problem's name")
        body = [_line(benchmark(known, preset)) for known in BENCHMARKS]
        print_table(["problem", "equation", "unknown", "readings", "errors of readings"], body)
        return
    bench = benchmark(name, preset)
    for label, text in _facts(bench):
        typer.echo(f"{label:<12}{text}")
    if picture is not None:
        _draw(bench, picture)
        typer.echo(f"drawn in {picture}")


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
    stages = ", then ".join(f"{s.length} of {s.kind}" for s in bench.protocol.stages)
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
        ("judged on", bench.headline.name),
        ("the paper", f"trains {stages}"),
    ]
    return [(label, text) for label, text in facts if text]


def _draw(bench: Any, path: Path) -> None:
    import io

    from unpinn._errors import UserError
    from unpinn._files import write_bytes
    from unpinn.report._pictures import point_layout

    problem = bench.problem
    conditions = {
        condition.name: problem.condition_points(number, 0)
        for number, condition in enumerate(problem.conditions)
    }
    figure = point_layout(
        bench.reading_points(), problem.collocation_points(0), conditions,
        axes=tuple(problem.coordinates), domain=tuple(problem.coordinates.values()),
    )  # fmt: skip
    kind = path.suffix.removeprefix(".").lower() or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise UserError(f"no picture can be drawn as {path.suffix!r}; use .png, .pdf or .svg")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    write_bytes(path, buffer.getvalue())


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("problems")(problems)
