"""A small problem file with its readings, and a finished run of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

STATED = """\
import unpinn

problem = unpinn.Problem(
    name="transport",
    coordinates={"x": (0.0, 1.0), "t": (0.0, 1.0)},
    fields=["u"],
    unknowns=[unpinn.Scalar("speed", initial=1.0)],
    equations={"transport": lambda u, speed: u.t + speed * u.x},
    conditions=[unpinn.Condition("start", lambda u, x: u - x, at={"t": "low"},
                                 points=unpinn.Grid(9))],
    collocation=unpinn.Grid(7, 7),
)
protocol = unpinn.Protocol(
    (unpinn.Adam(epochs=60, rate=1e-2),),
    architecture=unpinn.Architecture(width=8, depth=2),
    name="tiny",
)
recipe = unpinn.Recipe(
    "tiny", unpinn.ByMixture(), unpinn.Schedule(steps=2, fraction=0.1),
    (unpinn.Adam(epochs=20, rate=1e-3),), rounds=1,
)
"""


class Run(NamedTuple):
    """What a finished run was asked, where it is, and what it printed."""

    arguments: tuple[Any, ...]
    directory: Path
    records: list[dict[str, Any]]
    printed: str


@pytest.fixture(scope="session")
def invoke():
    """Run `unpinn ARGUMENTS...` in this process."""
    from typer.testing import CliRunner, Result

    from unpinn.cli import app

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


@pytest.fixture(scope="session")
def stated(tmp_path_factory) -> Path:
    """A problem file, with `sensors.csv` beside it: a sixth of the readings are off by two."""
    folder = tmp_path_factory.mktemp("stated")
    file = folder / "transport.py"
    file.write_text(STATED)
    x, t = (part.ravel() for part in np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 1, 8)))
    values = x - 2 * t + 0.02 * np.random.default_rng(0).standard_normal(64)
    values[::6] += 2.0
    rows = "\n".join(",".join(f"{v:.6f}" for v in row) for row in zip(x, t, values, strict=True))
    (folder / "sensors.csv").write_text(f"x,t,u\n{rows}\n")
    return file


@pytest.fixture(scope="session")
def finished(invoke, stated, tmp_path_factory) -> Run:
    """The whole pipeline on it, printed as JSON."""
    out = tmp_path_factory.mktemp("finished") / "run"
    arguments = ("run", stated, "--data", stated.with_name("sensors.csv"), "--out", out)
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return Run(arguments, out, json.loads(result.stdout), result.stdout)
