"""wave: a vibrating string from noisy readings near its ends."""

from __future__ import annotations

import numpy as np

from unpinn.benchmarks import _presets as presets
from unpinn.benchmarks._benchmark import Benchmark
from unpinn.benchmarks._judging import Quantity
from unpinn.benchmarks._layout import Patch
from unpinn.benchmarks._noise import Noise
from unpinn.problem import Condition, Grid, Problem, Sobol


def exact_u(x, t):
    """The deflection."""
    return np.sin(2 * np.pi * x) * np.sin(2 * np.pi * t)


def string(u):
    """The equation."""
    return u.tt - u.xx


def held(u):
    """The ends do not move."""
    return u


def wave(preset: presets.Preset) -> Benchmark:
    """The benchmark."""
    end = Grid(presets.choose(preset, 120, 50))
    problem = Problem(
        coordinates={"x": (0, 1), "t": (0, 1)},
        fields=["u"],
        equations={"wave": string},
        conditions=[Condition("u at the ends", held, at="walls", points=end)],
        collocation=Sobol(2160),
        name="wave",
        source={"benchmark": "wave", "preset": preset},
    )
    band = Grid(10, presets.choose(preset, 60, 67))
    return Benchmark(
        name="wave",
        title="Wave data assimilation",
        equation="u_tt - u_xx = 0 on (0,1)^2",
        problem=problem,
        exact={"u": exact_u},
        true_scalars={},
        observed=("u",),
        layout=(Patch(band, {"x": (0.0, 0.2)}), Patch(band, {"x": (0.8, 1.0)})),
        noise=presets.choose(preset, Noise(np.sqrt(0.5).item(), 0.1, 0.2), Noise(1.0, 0.01, 0.2)),
        headline=Quantity("u", ("u",)),
        state=Quantity("u", ("u",)),
        test_grid=Grid(200, 200),
        protocol=presets.assimilation(preset),
        fine_tune=presets.assimilation_fine_tuning(preset, 0.005),
        kind="assimilation",
        preset=preset,
    )
