"""`python -m unpinn.benchmarks.wake_generator`: simulate the wake again, or check one."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from unpinn._errors import UserError
from unpinn.benchmarks.wake_generator import (
    Check,
    SimulationSettings,
    check_wake,
    extract_harmonics,
    simulate,
    write_wake,
)

console = Console()


def generate(
    output: Annotated[Path, typer.Option(help="Where to write the harmonics (.npz).")] = Path(
        "wake.npz"
    ),
    degree: Annotated[int, typer.Option(help="Polynomial degree; 4 is a quick look.")] = 8,
    step: Annotated[float, typer.Option(help="Time step; must divide 0.1.")] = 0.005,
    end: Annotated[float, typer.Option(help="Time at which to stop.")] = 122.0,
    record: Annotated[float, typer.Option(help="How much of the end to record.")] = 24.0,
    verify: Annotated[Path | None, typer.Option(help="Only check this harmonics file.")] = None,
) -> None:
    """Simulate the flow past a cylinder from rest and write its harmonics.

    An interrupted run continues from the checkpoint beside its output.
    """
    try:
        if verify is None:
            _generate(output, SimulationSettings(degree, step, end, record))
        passed = _show(check_wake(output if verify is None else verify))
    except (UserError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from error
    if not passed:
        raise typer.Exit(1)


def _generate(output: Path, settings: SimulationSettings) -> None:
    if not output.parent.is_dir():
        raise UserError(f"There is no folder {str(output.parent)!r} to write to: create it first.")
    checkpoint = output.with_name(output.name + ".checkpoint")
    recording = simulate(settings, checkpoint, report=typer.echo)
    simulated = extract_harmonics(recording)
    write_wake(output, simulated)
    checkpoint.unlink(missing_ok=True)
    typer.echo(
        f"wrote {output.name}: period {simulated.wake.period:.5f}, "
        f"unsteadiness {simulated.unsteadiness:.1e}, "
        f"divergence over the domain {recording.divergence:.1e}, "
        f"lost mass {recording.outflux:.1e}"
    )


def _show(checks: list[Check]) -> bool:
    table = Table("check", "measured", "expected", "tolerance", "")
    for check in checks:
        verdict = "passed" if check.passed else "[bold red]failed[/]"
        numbers = (f"{value:.6g}" for value in (check.measured, check.expected, check.tolerance))
        table.add_row(check.name, *numbers, verdict)
    console.print(table)
    return all(check.passed for check in checks)


if __name__ == "__main__":
    typer.run(generate)
