"""poisson: a membrane from noisy readings of its middle, its rim unseen and not prescribed."""

from __future__ import annotations

from unpinn.benchmarks import _presets as presets
from unpinn.benchmarks._benchmark import Benchmark
from unpinn.benchmarks._judging import Quantity
from unpinn.benchmarks._layout import Patch
from unpinn.benchmarks._noise import Noise
from unpinn.problem import Grid, Problem, Sobol


def exact_u(x, y):
    """The state."""
    return 30 * x * y * (1 - x) * (1 - y)


def forcing(x, y):
    """The right-hand side."""
    return 60 * (x * (1 - x) + y * (1 - y))


def balance(u, x, y):
    """The equation."""
    return -u.laplacian - forcing(x, y)


def poisson(preset: presets.Preset) -> Benchmark:
    """The benchmark."""
    problem = Problem(
        coordinates={"x": (0, 1), "y": (0, 1)},
        fields=["u"],
        equations={"poisson": balance},
        collocation=Sobol(175),
        name="poisson",
        source={"benchmark": "poisson", "preset": preset},
    )
    middle = {"x": (0.125, 0.875), "y": (0.125, 0.875)}
    return Benchmark(
        name="poisson",
        title="Poisson data assimilation",
        equation="-Lap u = f on (0,1)^2",
        problem=problem,
        exact={"u": exact_u},
        true_scalars={},
        observed=("u",),
        layout=(Patch(Grid(15, 15), middle),),
        noise=Noise(presets.choose(preset, 1.0, 0.5), 0.01, 0.2),
        headline=Quantity("u", ("u",)),
        state=Quantity("u", ("u",)),
        test_grid=Grid(200, 200),
        protocol=presets.assimilation(preset),
        fine_tune=presets.assimilation_fine_tuning(preset, 0.005),
        kind="assimilation",
        preset=preset,
    )
