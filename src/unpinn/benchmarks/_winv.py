"""winv: the speed of waves on a string that swings in two modes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from unpinn.benchmarks import _presets as presets
from unpinn.benchmarks._benchmark import Benchmark
from unpinn.benchmarks._judging import Quantity
from unpinn.benchmarks._layout import Patch
from unpinn.benchmarks._noise import Noise
from unpinn.problem import Condition, Grid, Problem, Scalar


def exact_u(x, t):
    """The deflection."""
    slow = np.sin(np.pi * x) * np.cos(2 * np.pi * t)
    return slow + 0.5 * np.sin(4 * np.pi * x) * np.cos(8 * np.pi * t)


def wave(u, c):
    """The equation."""
    return u.tt - c**2 * u.xx


def held(u):
    """The ends do not move."""
    return u


def start(u, x):
    """The deflection at first."""
    return u - (jnp.sin(jnp.pi * x) + 0.5 * jnp.sin(4 * jnp.pi * x))


def at_rest(u):
    """Nothing moves at first."""
    return u.t


def winv(preset: presets.Preset) -> Benchmark:
    """The benchmark."""
    problem = Problem(
        coordinates={"x": (0, 1), "t": (0, 1)},
        fields=["u"],
        unknowns=[Scalar("c", initial=1.0)],
        equations={"wave": wave},
        conditions=[
            Condition("u at the ends", held, at="walls", points=Grid(50)),
            Condition("u at first", start, at={"t": "low"}, points=Grid(200)),
            Condition("u_t at first", at_rest, at={"t": "low"}, points=Grid(200)),
        ],
        collocation=Grid(50, 40),
        name="winv",
        source={"benchmark": "winv", "preset": preset},
    )
    return Benchmark(
        name="winv",
        title="Wave speed inversion",
        equation="u_tt - c^2 u_xx = 0 on [0,1]^2",
        problem=problem,
        exact={"u": exact_u},
        true_scalars={"c": 2.0},
        observed=("u",),
        layout=(Patch(Grid(100, 100)),),
        noise=Noise(1.0, presets.choose(preset, 0.1, 0.01), 0.6),
        headline=Quantity("c", ("c",)),
        state=Quantity("u", ("u",)),
        test_grid=Grid(200, 200),
        protocol=presets.inversion(preset),
        fine_tune=presets.inversion_fine_tuning(preset, presets.choose(preset, 0.005, 0.1)),
        kind="inversion",
        preset=preset,
    )
