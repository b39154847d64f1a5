"""nsinv: two coefficients and the pressure of the flow behind a cylinder, from its velocity."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.benchmarks import _presets as presets
from unpinn.benchmarks._benchmark import Benchmark
from unpinn.benchmarks._judging import Quantity
from unpinn.benchmarks._layout import GridRows, Patch
from unpinn.benchmarks._noise import Noise
from unpinn.benchmarks._wake import load_wake
from unpinn.problem import Grid, Problem, Scalar

DOMAIN = {"x": (1.0, 8.0), "y": (-2.0, 2.0), "t": (0.0, 7.0)}
FRAMES = Grid(100, 50, 71)
READINGS = 10_000
DEGREE = 5


def momentum(u, v, p, b1, b2):
    """Newton's second law, in both directions."""
    along = u.t + b1 * (u * u.x + v * u.y) + p.x - b2 * u.laplacian
    across = v.t + b1 * (u * v.x + v * v.y) + p.y - b2 * v.laplacian
    return along, across


def incompressibility(u, v):
    """Volume is kept."""
    return u.x + v.y


def nsinv(preset: presets.Preset, wake: str) -> Benchmark:
    """The benchmark.

    Arguments:
        preset: whose settings.
        wake: "embedded", "classical", or the path of a wake's file.
    """
    problem = Problem(
        coordinates=DOMAIN,
        fields=["u", "v", "p"],
        unknowns=[
            Scalar("b1", initial=presets.choose(preset, 0.0, 1.0)),
            Scalar("b2", initial=1.0),
        ],
        equations={"momentum": momentum, "incompressibility": incompressibility},
        collocation=Grid(20, 10, 10),
        name="nsinv",
        source={"benchmark": "nsinv", "preset": preset, "wake": wake},
    )
    return Benchmark(
        name="nsinv",
        title="Navier-Stokes inversion",
        equation="U_t + b1 (U.grad)U + grad p - b2 Lap U = 0, div U = 0 on [1,8]x[-2,2]x[0,7]",
        problem=problem,
        exact={name: partial(exact_field, wake, name) for name in ("u", "v", "p")},
        true_scalars={"b1": 1.0, "b2": 0.01},
        observed=("u", "v"),
        layout=(Patch(GridRows(FRAMES, READINGS)),),
        noise=presets.choose(preset, Noise(np.sqrt(0.5).item(), 0.1, 0.6), Noise(0.5, 0.01, 0.6)),
        headline=Quantity("p", ("p",), shifted=True),
        state=Quantity("velocity", ("u", "v")),
        # Nothing in the equations ties the pressure's mean at one time to that at another.
        beside=(Quantity("p", ("p",), shifted=True, at="t"),),
        test_grid=FRAMES,
        protocol=presets.inversion(preset),
        fine_tune=presets.inversion_fine_tuning(preset, presets.choose(preset, 0.005, 0.05)),
        kind="inversion",
        preset=preset,
    )


def exact_field(wake: str, name: str, x, y, t) -> np.ndarray:
    """A field of the wake, exact at its frames and interpolated to fifth degree between them."""
    return wake_spline(wake, name)(np.stack(np.broadcast_arrays(x, y, t), axis=-1))


@lru_cache(maxsize=6)
def wake_spline(wake: str, name: str) -> Any:
    """A field of the wake over the domain as a tensor-product spline through its frames."""
    from scipy.interpolate import NdBSpline, make_interp_spline

    frames = _wake(wake)
    within = frames.time <= DOMAIN["t"][1] + 1e-9
    coefficients = getattr(frames, name)[:, :, within]
    knots = []
    for axis, nodes in enumerate((frames.x, frames.y, frames.time[within])):
        line = make_interp_spline(nodes, np.moveaxis(coefficients, axis, 0), k=DEGREE)
        knots.append(line.t)
        coefficients = np.moveaxis(line.c, 0, axis)
    return NdBSpline(tuple(knots), np.ascontiguousarray(coefficients), DEGREE)


@lru_cache(maxsize=2)
def _wake(wake: str):
    frames = load_wake(source=wake)
    axes = {"x": frames.x, "y": frames.y, "t": frames.time}
    for name, (low, high) in DOMAIN.items():
        nodes = axes[name]
        slack = 1e-6 * (high - low)
        if nodes[0] > low + slack or nodes[-1] < high - slack:
            raise UserError(
                f"the wake {wake!r} covers {name} in [{nodes[0]:g}, {nodes[-1]:g}] only; nsinv "
                f"needs [{low:g}, {high:g}]"
            )
        if np.count_nonzero(nodes <= high + slack) <= DEGREE:
            raise UserError(
                f"the wake {wake!r} has {len(nodes)} values of {name}; nsinv needs more than "
                f"{DEGREE} to interpolate between"
            )
    return frames
