"""pinv: the diffusivity of a plate from noisy readings of its steady state."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from unpinn.benchmarks import _presets as presets
from unpinn.benchmarks._benchmark import Benchmark
from unpinn.benchmarks._judging import Quantity
from unpinn.benchmarks._layout import Patch
from unpinn.benchmarks._noise import Noise
from unpinn.problem import Condition, Field, Grid, Problem


def exact_u(x, y):
    """The state."""
    return np.sin(np.pi * x) * np.sin(np.pi * y)


def exact_a(x, y):
    """The diffusivity."""
    return 1 / (1 + x**2 + y**2 + (x - 1) ** 2 + (y - 1) ** 2)


def forcing(x, y):
    """The right-hand side."""
    d = 1 + x**2 + y**2 + (x - 1) ** 2 + (y - 1) ** 2
    sx, sy = jnp.sin(jnp.pi * x), jnp.sin(jnp.pi * y)
    cx, cy = jnp.cos(jnp.pi * x), jnp.cos(jnp.pi * y)
    slope = (2 * x - 1) * cx * sy + (2 * y - 1) * sx * cy
    return 2 * jnp.pi**2 * sx * sy / d + 2 * jnp.pi * slope / d**2


def diffusion(u, a, x, y):
    """The equation."""
    return -(a * u.laplacian + a.x * u.x + a.y * u.y) - forcing(x, y)


def zero(u):
    """The state vanishes on the boundary."""
    return u


def known_diffusivity(a, x, y):
    """The diffusivity is known on the boundary."""
    return a - exact_a(x, y)


def pinv(preset: presets.Preset) -> Benchmark:
    """The benchmark."""
    edge = Grid(512)
    problem = Problem(
        coordinates={"x": (0, 1), "y": (0, 1)},
        fields=["u"],
        unknowns=[Field("a")],
        equations={"diffusion": diffusion},
        conditions=[
            Condition("u on the boundary", zero, at="walls", points=edge),
            Condition("a on the boundary", known_diffusivity, at="walls", points=edge),
        ],
        collocation=Grid(128, 64),
        name="pinv",
        source={"benchmark": "pinv", "preset": preset},
    )
    return Benchmark(
        name="pinv",
        title="Poisson coefficient inversion",
        equation="-div(a grad u) = f on [0,1]^2",
        problem=problem,
        exact={"u": exact_u, "a": exact_a},
        true_scalars={},
        observed=("u",),
        layout=(Patch(Grid(50, 50)),),
        noise=Noise(1.0, presets.choose(preset, 0.1, 0.01), 0.6),
        headline=Quantity("a", ("a",)),
        state=Quantity("u", ("u",)),
        test_grid=Grid(100, 100),
        protocol=presets.inversion(preset),
        fine_tune=presets.inversion_fine_tuning(preset, presets.choose(preset, 0.005, 0.001)),
        kind="inversion",
        preset=preset,
    )
