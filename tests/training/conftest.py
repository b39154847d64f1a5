"""A small transport problem, small enough to train in a blink."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from unpinn.network import Architecture
from unpinn.problem import Condition, Grid, Observations, Problem, Scalar, observe
from unpinn.training import Adam, Fit, Protocol, train

TINY = Architecture(width=6, depth=2)


def transport(u, c):
    return u.t + c * u.x


def start(u, x):
    return u - x


def _tiny(*stages, **parts) -> Protocol:
    return Protocol(stages, architecture=TINY, **parts)


@pytest.fixture(scope="session")
def tiny():
    """A protocol with a tiny network."""
    return _tiny


class Case(NamedTuple):
    problem: Problem
    observations: Observations


@pytest.fixture(scope="session")
def case() -> Case:
    problem = Problem(
        coordinates={"x": (0, 1), "t": (0, 1)},
        fields=["u"],
        unknowns=[Scalar("c", initial=1.0)],
        equations={"transport": transport},
        conditions=[Condition("start", start, at={"t": 0.0}, points=Grid(9))],
        collocation=Grid(7, 7),
        name="transport",
    )
    points = Grid(6, 6).draw(problem.coordinates)
    noise = 0.05 * np.random.default_rng(0).standard_normal(len(points))
    values = points[:, 0] - 2 * points[:, 1] + noise
    sensor = [f"s{number % 5}" for number in range(len(points))]
    return Case(problem, observe(problem, points, values, sigma=0.05, sensor=sensor))


@pytest.fixture(scope="session")
def fit(case) -> Fit:
    return train(*case, _tiny(Adam(epochs=40, rate=1e-2)), seed=3)
