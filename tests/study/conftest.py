"""A problem so small that a run of it is mostly compilation, and plans of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from unpinn._files import read_arrays
from unpinn.study import (
    Choice,
    Graph,
    InProcess,
    Source,
    Store,
    Summary,
    graph_of,
    parse_plan,
    run_study,
)  # fmt: skip

DECAY = """
import numpy as np
from unpinn import Adam, Architecture, Grid, Problem, Protocol, Scalar, observe, paper_recipe

problem = Problem(
    coordinates={"t": (0, 1)},
    fields=["u"],
    unknowns=[Scalar("rate", initial=0.5)],
    equations={"decay": lambda u, rate: u.t + rate * u},
    collocation=Grid(8),
    name="decay",
)
_points = np.linspace(0, 1, 12)[:, None]
_error = 0.01 * np.cos(40 * _points[:, 0])
_error[3] = 0.8
observations = observe(problem, _points, np.exp(-2 * _points[:, 0]) + _error)
small = Architecture(width=6, depth=2)
protocol = Protocol((Adam(epochs=EPOCHS),), scaled=False, architecture=small)
"""

# Whether a problem's file is read by a worker process and not by the tests' own; those that are
# spawned by a cluster in this process import what it has imported.
ELSEWHERE = """
import multiprocessing, sys
elsewhere = "pytest" not in sys.modules or multiprocessing.parent_process() is not None
"""

# Added to the problem's file, this has worker processes keep a checkpoint after every chunk of
# epochs, and take their time, so that a kill meets them in the middle of a run.
SLOWLY = (
    ELSEWHERE
    + """
import time
if elsewhere:
    from unpinn.training._checkpoint import Checkpoint

    def _write(self, snapshot, write=Checkpoint.write):
        write(self, snapshot)
        time.sleep(0.05)

    Checkpoint.due, Checkpoint.write = lambda self: True, _write
"""
)

PLAN = """
title = "Decay"

[defaults]
seeds = [1, 2]
recipe = "paper"

[[table]]
name = "rates"
problems = ["decay.py"]
methods = ["pinn", "ppinn"]
quantities = ["unknowns.rate", "misfit", "neurons_left"]
main = true
variants = [
    { label = "few", x = 1, unlearning = { share = 0.5, fraction = 0.1, steps = 2 } },
    { label = "many", x = 2, unlearning = { share = 0.8, fraction = 0.1, steps = 2 } },
]
"""

# What differs between two runs of the same settings: times, and where they were run.
INCIDENTAL = {"seconds", "seconds_in_all", "timings", "wall", "environment"}


class Studied(NamedTuple):
    """A study that was run."""

    graph: Graph
    store: Store
    summary: Summary


def decay_in(
    folder: Path, text: str = PLAN, epochs: int = 500, budget: str = "quick",
    seeds: tuple[int, ...] = (1, 2), more: str = "",
) -> Graph:  # fmt: skip
    """A graph of the small problem, from a plan's text and a number of epochs."""
    (folder / "decay.py").write_text(DECAY.replace("EPOCHS", str(epochs)) + more)
    (folder / "decay.toml").write_text(text)
    plan = parse_plan(Source("decay.toml", text), folder)
    return graph_of([plan], Choice(budget, seeds))


def substance(record: dict[str, Any] | None) -> dict[str, Any]:
    """A record without what differs between two runs of the same settings."""
    assert record is not None
    return {name: value for name, value in record.items() if name not in INCIDENTAL}


def weights(store: Store, address: str) -> dict[str, bytes]:
    """Every number of a finished run's network; the order in the file is not always the same."""
    arrays, _ = read_arrays(store.place(address).fit / "fit.safetensors")
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.fixture
def decay(tmp_path: Path) -> Callable[..., Graph]:
    """Make a graph of the small problem in a new folder."""
    return lambda *arguments, **settings: decay_in(tmp_path, *arguments, **settings)


@pytest.fixture(scope="session")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Studied:
    """The small study, run undisturbed in this process; nobody may write into its store."""
    folder = tmp_path_factory.mktemp("studied")
    graph, store = decay_in(folder), Store(folder / "store")
    return Studied(graph, store, run_study(graph, store, InProcess()))
