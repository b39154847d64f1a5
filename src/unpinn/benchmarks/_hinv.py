"""hinv: the diffusivity of a plate from noisy readings of its cooling."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from unpinn.benchmarks import _presets as presets
from unpinn.benchmarks._benchmark import Benchmark
from unpinn.benchmarks._judging import Quantity
from unpinn.benchmarks._layout import Patch
from unpinn.benchmarks._noise import Noise
from unpinn.problem import Condition, Field, Grid, Problem


def exact_u(x, y, t):
    """The state."""
    return np.exp(-t) * np.sin(np.pi * x) * np.sin(np.pi * y)


def exact_a(x, y, t):
    """The diffusivity, which does not change in time."""
    return 2 + np.sin(np.pi * x) * np.sin(np.pi * y) + 0 * t


def forcing(x, y, t):
    """The right-hand side."""
    sx, sy = jnp.sin(jnp.pi * x), jnp.sin(jnp.pi * y)
    cx, cy = jnp.cos(jnp.pi * x), jnp.cos(jnp.pi * y)
    s = sx * sy
    slope = 2 * s**2 - cx**2 * sy**2 - sx**2 * cy**2
    return jnp.exp(-t) * ((4 * jnp.pi**2 - 1) * s + jnp.pi**2 * slope)


def heat(u, a, x, y, t):
    """The equation."""
    return u.t - (a * u.laplacian + a.x * u.x + a.y * u.y) - forcing(x, y, t)


def zero(u):
    """The state vanishes on the boundary."""
    return u


def known_diffusivity(a):
    """The diffusivity is known on the boundary."""
    return a - 2


def start(u, x, y):
    """The state at first."""
    return u - jnp.sin(jnp.pi * x) * jnp.sin(jnp.pi * y)


def hinv(preset: presets.Preset) -> Benchmark:
    """The benchmark."""
    wall = Grid(32, 16)
    problem = Problem(
        coordinates={"x": (-1, 1), "y": (-1, 1), "t": (0, 1)},
        fields=["u"],
        unknowns=[Field("a")],
        equations={"heat": heat},
        conditions=[
            Condition("u on the boundary", zero, at="walls", points=wall),
            Condition("a on the boundary", known_diffusivity, at="walls", points=wall),
            Condition("u at first", start, at={"t": "low"}, points=Grid(64, 32)),
        ],
        collocation=Grid(32, 16, 16),
        name="hinv",
        source={"benchmark": "hinv", "preset": preset},
    )
    return Benchmark(
        name="hinv",
        title="Heat conductivity inversion",
        equation="u_t - div(a grad u) = f on [-1,1]^2 x [0,1]",
        problem=problem,
        exact={"u": exact_u, "a": exact_a},
        true_scalars={},
        observed=("u",),
        layout=(Patch(Grid(10, 10, 25)),),
        noise=Noise(1.0, presets.choose(preset, 0.1, 0.01), 0.6),
        headline=Quantity("a", ("a",)),
        state=Quantity("u", ("u",)),
        test_grid=Grid(60, 60, 50),
        protocol=presets.inversion(preset),
        fine_tune=presets.inversion_fine_tuning(preset, presets.choose(preset, 0.005, 0.01)),
        kind="inversion",
        preset=preset,
    )
