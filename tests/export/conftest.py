"""Small fits, barely trained: what is taken away must be what they hold, good or bad."""

from __future__ import annotations

import numpy as np
import pytest

from unpinn.network import Architecture
from unpinn.problem import Field, Problem, Scalar, Sobol, observe
from unpinn.training import Adam, Fit, Protocol, train


def trained(problem: Problem, quantities: tuple[str, ...]) -> Fit:
    """A few epochs on readings without meaning."""
    random = np.random.default_rng(1)
    ends = np.array(list(problem.coordinates.values()), float)
    points = ends[:, 0] + (ends[:, 1] - ends[:, 0]) * random.random((20, problem.dimension))
    values = random.standard_normal((20, len(quantities)))
    protocol = Protocol((Adam(epochs=5, rate=1e-2),), architecture=Architecture(width=8, depth=2))
    return train(problem, observe(problem, points, values, quantities), protocol, seed=5)


@pytest.fixture(scope="session")
def moving() -> Fit:
    """Two fields of one coordinate of space and time, a measurement, and units."""
    problem = Problem(
        coordinates={"x": (0.0, 2.0), "t": (1.0, 4.0)},
        fields=["u", "v"],
        unknowns=[Scalar("speed", initial=2.0, bounds=(0, None))],
        equations={"one": lambda u, v, speed: u.t + speed * v.x, "two": lambda u, v: v.t - u.x},
        measurements={"slope": lambda u: u.x},
        collocation=Sobol(8),
        name="moving & <still>",
        source={"units": {"x": "m", "t": "s", "u": "K", "speed": "m/s"}},
    )
    return trained(problem, ("u", "slope"))


@pytest.fixture(scope="session")
def still() -> Fit:
    """A field and a coefficient that varies, in the plane, without time."""
    problem = Problem(
        coordinates={"x": (0.0, 2.0), "y": (-1.0, 1.0)},
        fields=["u"],
        unknowns=[Field("k", scale=2.0)],
        equations={"flow": lambda u, k: k * u.laplacian + k.x * u.x + k.y * u.y},
        collocation=Sobol(8),
        name="still",
    )
    return trained(problem, ("u",))
