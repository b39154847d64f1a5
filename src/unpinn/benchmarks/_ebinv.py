"""ebinv: the stiffness of a vibrating beam."""

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
    return np.sin(np.pi * x) * np.cos(np.pi**2 * t)


def beam(u, alpha):
    """The equation."""
    return u.tt + alpha**2 * u.xxxx


def held(u):
    """The ends do not move."""
    return u


def free_to_turn(u):
    """No moment acts on the ends."""
    return u.xx


def start(u, x):
    """The deflection at first."""
    return u - jnp.sin(jnp.pi * x)


def at_rest(u):
    """Nothing moves at first."""
    return u.t


def ebinv(preset: presets.Preset) -> Benchmark:
    """The benchmark."""
    end = Grid(50)
    problem = Problem(
        coordinates={"x": (0, 1), "t": (0, 1)},
        fields=["u"],
        unknowns=[Scalar("alpha", initial=0.5)],
        equations={"beam": beam},
        conditions=[
            Condition("u at the ends", held, at="walls", points=end),
            Condition("u_xx at the ends", free_to_turn, at="walls", points=end),
            Condition("u at first", start, at={"t": "low"}, points=Grid(200)),
            Condition("u_t at first", at_rest, at={"t": "low"}, points=Grid(200)),
        ],
        collocation=Grid(50, 40),
        name="ebinv",
        source={"benchmark": "ebinv", "preset": preset},
    )
    # The released configuration weighs conditions less than the paper says.
    light, lighter = ({"boundary": w, "initial": w} for w in (0.15, 0.01))
    return Benchmark(
        name="ebinv",
        title="Euler-Bernoulli beam inversion",
        equation="u_tt + alpha^2 u_xxxx = 0 on [0,1]^2",
        problem=problem,
        exact={"u": exact_u},
        true_scalars={"alpha": 1.0},
        observed=("u",),
        layout=(Patch(presets.choose(preset, Grid(100, 100), Grid(100, 50))),),
        noise=presets.choose(preset, Noise(1.0, 0.1, 0.6), Noise(0.5, 0.01, 0.6)),
        headline=Quantity("alpha", ("alpha",)),
        state=Quantity("u", ("u",)),
        test_grid=Grid(200, 200),
        protocol=presets.inversion(preset, presets.choose(preset, {}, light)),
        fine_tune=presets.inversion_fine_tuning(
            preset, presets.choose(preset, 0.005, 0.1), presets.choose(preset, {}, lighter)
        ),
        kind="inversion",
        preset=preset,
    )
