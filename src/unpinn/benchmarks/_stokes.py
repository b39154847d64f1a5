"""stokes: creeping flow and its pressure, from noisy velocities in a disc."""

from __future__ import annotations

import numpy as np

from unpinn.benchmarks import _presets as presets
from unpinn.benchmarks._benchmark import Benchmark
from unpinn.benchmarks._judging import Quantity
from unpinn.benchmarks._layout import Patch
from unpinn.benchmarks._noise import Noise
from unpinn.problem import Grid, Problem, Sobol


def exact_u(x, y):
    """The velocity along x."""
    return 4 * x * y**3


def exact_v(x, y):
    """The velocity along y."""
    return x**4 - y**4


def exact_p(x, y):
    """The pressure."""
    return 12 * x**2 * y - 4 * y**3 - 1


def momentum(u, v, p):
    """Friction and pressure balance, in both directions."""
    return p.x - u.laplacian, p.y - v.laplacian


def incompressibility(u, v):
    """Volume is kept."""
    return u.x + v.y


def in_disc(x, y):
    """Where velocities are read."""
    return (x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.25**2


def stokes(preset: presets.Preset) -> Benchmark:
    """The benchmark."""
    problem = Problem(
        coordinates={"x": (0, 1), "y": (0, 1)},
        fields=["u", "v", "p"],
        equations={"momentum": momentum, "incompressibility": incompressibility},
        collocation=Sobol(1280),
        name="stokes",
        source={"benchmark": "stokes", "preset": preset},
    )
    # The middles of so many cells of the square give 320 readings in the disc, or 300.
    cells = presets.choose(preset, (36, 44), (34, 45))
    return Benchmark(
        name="stokes",
        title="Stokes data assimilation",
        equation="-Lap U + grad p = 0, div U = 0 on (0,1)^2",
        problem=problem,
        exact={"u": exact_u, "v": exact_v, "p": exact_p},
        true_scalars={},
        observed=("u", "v"),
        layout=(Patch(Grid(*cells, where=in_disc, ends=False)),),
        noise=presets.choose(preset, Noise(np.sqrt(0.5).item(), 0.1, 0.2), Noise(0.5, 0.01, 0.2)),
        headline=Quantity("velocity", ("u", "v")),
        state=Quantity("velocity", ("u", "v")),
        beside=(Quantity("p", ("p",), shifted=True),),
        test_grid=Grid(200, 200),
        protocol=presets.assimilation(preset),
        fine_tune=presets.assimilation_fine_tuning(preset, presets.choose(preset, 0.005, 0.001)),
        kind="assimilation",
        preset=preset,
    )
