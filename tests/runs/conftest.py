"""A problem file with its readings, and one finished run of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unpinn.runs import Configuration, Run, execute, pose

STATED = """\
import unpinn

problem = unpinn.Problem(
    coordinates={"x": (0.0, 1.0), "t": (0.0, 1.0)},
    fields=["u"],
    unknowns=[unpinn.Scalar("speed", initial=1.0)],
    equations={"transport": lambda u, speed: u.t + speed * u.x},
    collocation=unpinn.Grid(6, 6),
)
protocol = unpinn.Protocol(
    (unpinn.Adam(epochs=40, rate=1e-2),), architecture=unpinn.Architecture(width=8, depth=2)
)
recipe = unpinn.Recipe(
    "tiny", unpinn.ByMixture(), unpinn.Schedule(steps=2, fraction=0.1),
    (unpinn.Adam(epochs=20, rate=1e-3),), rounds=1,
)
"""


@pytest.fixture(scope="session")
def stated(tmp_path_factory) -> Path:
    """A problem file with `sensors.csv` beside it: one sensor of four reads two too much."""
    folder = tmp_path_factory.mktemp("stated")
    random = np.random.default_rng(0)
    rows = ["sensor,x,t,u"]
    for number, (x, t) in enumerate(random.random((64, 2))):
        value = x - 2 * t + 0.02 * random.standard_normal() + 2.0 * (number % 4 == 0)
        rows.append(f"S{number % 4},{x:.5f},{t:.5f},{value:.5f}")
    (folder / "sensors.csv").write_text("\n".join(rows) + "\n")
    (folder / "transport.py").write_text(STATED)
    return folder / "transport.py"


@pytest.fixture(scope="session")
def asked(stated) -> Configuration:
    """The settings of the run."""
    return Configuration(str(stated), seed=3, data=str(stated.with_name("sensors.csv")))


@pytest.fixture(scope="session")
def finished(asked, tmp_path_factory) -> Run:
    """The run, written to a directory."""
    return execute(pose(asked), tmp_path_factory.mktemp("finished") / "run")
