"""heat and heat-forced: a cooling rod from noisy readings of its middle.

The paper's text states the first; its tables were computed with the second.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from unpinn.benchmarks import _presets as presets
from unpinn.benchmarks._benchmark import Benchmark
from unpinn.benchmarks._judging import Quantity
from unpinn.benchmarks._layout import Patch
from unpinn.benchmarks._noise import Noise
from unpinn.problem import Condition, Grid, Problem, Sobol


def exact_free(x, t):
    """The temperature of the rod left to itself."""
    return np.exp(-4 * np.pi**2 * t) * np.sin(2 * np.pi * x)


def exact_forced(x, t):
    """The temperature of the rod that is heated at first."""
    return np.exp(-4 * np.pi**2 * t**2) * np.sin(2 * np.pi * x)


def forcing(x, t):
    """The heating."""
    state = jnp.exp(-4 * jnp.pi**2 * t**2) * jnp.sin(2 * jnp.pi * x)
    return 4 * jnp.pi**2 * (1 - 2 * t) * state


def free(u):
    """The equation without heating."""
    return u.t - u.xx


def forced(u, x, t):
    """The equation with heating."""
    return u.t - u.xx - forcing(x, t)


def zero(u):
    """The ends are kept at zero."""
    return u


def heat(preset: presets.Preset) -> Benchmark:
    """The benchmark as the text states it."""
    title, equation = "Heat data assimilation", "u_t - u_xx = 0 on (0,1)x(0,0.02)"
    return _rod("heat", title, equation, free, exact_free, preset)


def heat_forced(preset: presets.Preset) -> Benchmark:
    """The benchmark as the tables were computed."""
    title = "Heat data assimilation, as in the tables"
    equation = "u_t - u_xx = f on (0,1)x(0,0.02)"
    return _rod("heat-forced", title, equation, forced, exact_forced, preset)


def _rod(name: str, title: str, equation: str, residual, exact, preset) -> Benchmark:
    problem = Problem(
        coordinates={"x": (0, 1), "t": (0, 0.02)},
        fields=["u"],
        equations={"heat": residual},
        conditions=[Condition("u at the ends", zero, at="walls", points=Grid(40))],
        collocation=Sobol(320),
        name=name,
        source={"benchmark": name, "preset": preset},
    )
    return Benchmark(
        name=name,
        title=title,
        equation=equation,
        problem=problem,
        exact={"u": exact},
        true_scalars={},
        observed=("u",),
        layout=(Patch(Grid(20, 20), {"x": (0.2, 0.8)}),),
        noise=presets.choose(preset, Noise(np.sqrt(0.5).item(), 0.1, 0.4), Noise(0.5, 0.01, 0.4)),
        headline=Quantity("u", ("u",)),
        state=Quantity("u", ("u",)),
        test_grid=Grid(200, 200),
        protocol=presets.assimilation(preset),
        fine_tune=presets.assimilation_fine_tuning(preset, 0.005),
        kind="assimilation",
        preset=preset,
    )
