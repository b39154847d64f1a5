"""A tiny inverse problem, two protocols of either kind, and every method's result on it, kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from unpinn.network import Architecture
from unpinn.problem import Condition, Observations, Problem, Scalar, Sobol, observe
from unpinn.rivals import Task, run_method
from unpinn.training import Adam, Fit, Lbfgs, Protocol, Quiet
from unpinn.unlearning import ByShare, Recipe, Schedule

# Options that make a method as short as the rest; the law is the same for any values.
SHORT = {
    "bpinn": {"burn_in": 3, "samples": 4, "steps": 3},
    "dpinn": {"passes": 5, "redraw": 4},
    "ensemble": {"members": 2},
}


def decay(u, k):
    return u.x + k * u


def start(u):
    return u - 1.0


@dataclass
class World:
    """The problem, and a memory of what was run."""

    problem: Problem
    observations: Observations
    sigma: np.ndarray
    protocols: dict[str, Protocol]
    recipe: Recipe
    fits: dict[tuple[str, str], Fit] = field(default_factory=dict)

    def task(self, kind: str, method: str = "", **changes) -> Task:
        task = Task(
            self.problem, self.observations, self.protocols[kind], seed=1, recipe=self.recipe,
            true_sigma=self.sigma, options=SHORT.get(method, {}), watcher=Quiet(),
        )  # fmt: skip
        return replace(task, **changes)

    def fit(self, method: str, kind: str) -> Fit:
        if (method, kind) not in self.fits:
            baseline = None if method == "pinn" else self.fit("pinn", kind)
            task = self.task(kind, method, baseline=baseline)
            self.fits[method, kind] = run_method(method, task)
        return self.fits[method, kind]


@pytest.fixture(scope="session")
def world() -> World:
    problem = Problem(
        coordinates={"x": (0, 2)},
        fields=["u"],
        unknowns=[Scalar("k", initial=0.5)],
        equations={"decay": decay},
        conditions=[Condition("start", start, at={"x": 0})],
        collocation=Sobol(16),
        name="decay",
    )
    random = np.random.default_rng(0)
    x = np.linspace(0, 2, 40)[:, None]
    sigma = np.where(random.random(40) < 0.3, 0.5, 0.02)
    values = np.exp(-x[:, 0]) + sigma * random.standard_normal(40)
    network = Architecture(width=8, depth=2)
    protocols = {
        "inversion": Protocol((Adam(24),), scaled=True, architecture=network),
        "assimilation": Protocol(
            (Adam(16, groups=("data",)), Lbfgs(8)), scaled=False, architecture=network
        ),
    }
    recipe = Recipe("tiny", ByShare(0.7), Schedule(steps=4), (Adam(10),))
    return World(problem, observe(problem, x, values), sigma, protocols, recipe)
