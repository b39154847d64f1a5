"""The three coefficients of the Lorenz system, from readings of a trajectory integrated here.

x' = s (y - x),  y' = x (r - z) - y,  z' = x y - b z,  s = 10, r = 15, b = 8/3.
"""

from __future__ import annotations

import numpy as np
from noise import Case, coefficient_errors, main, relative, spoil
from scipy.integrate import solve_ivp

import deepxde as dde  # isort: skip
import torch

TRUTH = {"s": 10.0, "r": 15.0, "b": 8.0 / 3.0}
START = (-8.0, 7.0, 27.0)
END = 3.0
READINGS = 200
# The network works in units of order one.
SIZE = 10.0


def trajectory(times: np.ndarray) -> np.ndarray:
    """The exact solution, (n, 3)."""

    def slope(_, state):
        x, y, z = state
        return [TRUTH["s"] * (y - x), x * (TRUTH["r"] - z) - y, x * y - TRUTH["b"] * z]

    found = solve_ivp(slope, (0, END), START, "DOP853", dense_output=True, rtol=1e-10, atol=1e-10)
    return found.sol(times).T


def always(value: float):
    """A constant; of one argument, since DeepXDE counts them."""
    return lambda _: value


def build(seed: int) -> Case:
    dde.config.set_random_seed(seed)
    s, r, b = (dde.Variable(1.0) for _ in range(3))

    def system(t, state):
        # The unknowns are trained in units of order one too.
        x, y, z = state[:, 0:1], state[:, 1:2], state[:, 2:3]
        x_t, y_t, z_t = (dde.grad.jacobian(state, t, i=k) for k in range(3))
        return [
            (x_t - s * SIZE * (y - x)) / SIZE**2,
            (y_t - x * (r * SIZE - z) + y) / SIZE**2,
            (z_t - x * y + b * SIZE * z) / SIZE**2,
        ]

    domain = dde.geometry.TimeDomain(0, END)
    times = np.random.default_rng(seed).uniform(0, END, (READINGS, 1))
    values, is_bad = spoil(trajectory(times[:, 0]), seed + 1, good=0.2, bad=6.0)
    start = [
        dde.icbc.IC(domain, always(value), lambda _, there: there, component=k)
        for k, value in enumerate(START)
    ]
    read = [dde.icbc.PointSetBC(times, values[:, k : k + 1], component=k) for k in range(3)]
    data = dde.data.PDE(domain, system, [*start, *read], num_domain=200, num_boundary=2)
    net = dde.nn.FNN([6, 40, 40, 40, 3], "tanh", "Glorot uniform")
    net.apply_feature_transform(
        lambda t: torch.cat([t / END, *(torch.sin(k * t) for k in range(1, 6))], dim=1)
    )
    net.apply_output_transform(lambda _, y: y * SIZE)
    model = dde.Model(data, net)
    weights = [10.0] * 3 + [1.0 / SIZE**2] * 6
    model.compile(
        "adam", lr=2e-3, loss_weights=weights, external_trainable_variables=[s, r, b], verbose=0
    )
    grid = np.linspace(0, END, 301)
    unknowns = {"s": s, "r": r, "b": b}
    scaled = {name: value / SIZE for name, value in TRUTH.items()}

    def errors():
        state = relative(model.predict(grid[:, None]), trajectory(grid))
        return {**coefficient_errors(unknowns, scaled), "state": state}

    return Case("lorenz", model, unknowns, 10_000, errors, is_bad)


if __name__ == "__main__":
    main(build)
