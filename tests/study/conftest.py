"""A problem so small that a run of it is mostly compilation, and plans of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from unpinn.study import Choice, Graph, Source, graph_of, parse_plan

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
variants = [
    { label = "few", x = 1, unlearning = { share = 0.5, fraction = 0.1, steps = 2 } },
    { label = "many", x = 2, unlearning = { share = 0.8, fraction = 0.1, steps = 2 } },
]
"""


@pytest.fixture
def decay(tmp_path: Path):
    """Make a graph of the small problem, from a plan's text and a number of epochs."""

    def make(text: str = PLAN, epochs: int = 5, budget: str = "quick", seeds=(1, 2)) -> Graph:
        (tmp_path / "decay.py").write_text(DECAY.replace("EPOCHS", str(epochs)))
        plan = parse_plan(Source("decay.toml", text), tmp_path)
        return graph_of([plan], Choice(budget, seeds))

    return make
