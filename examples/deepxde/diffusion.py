"""The diffusion coefficient of u_t = C u_xx + f, from scattered readings of u; C is 1.

u(x, t) = exp(-t) sin(pi x) on [-1, 1] x [0, 1], which solves it for
f = exp(-t) (pi^2 - 1) sin(pi x).
"""

from __future__ import annotations

import numpy as np
from noise import Case, coefficient_errors, main, relative, spoil

import deepxde as dde  # isort: skip
import torch

READINGS = 200


def solution(x: np.ndarray) -> np.ndarray:
    return np.exp(-x[:, 1:]) * np.sin(np.pi * x[:, :1])


def build(seed: int) -> Case:
    dde.config.set_random_seed(seed)
    coefficient = dde.Variable(2.0)

    def equation(x, u):
        source = (np.pi**2 - 1) * torch.exp(-x[:, 1:]) * torch.sin(np.pi * x[:, :1])
        u_t = dde.grad.jacobian(u, x, i=0, j=1)
        return u_t - coefficient * dde.grad.hessian(u, x, i=0, j=0) - source

    domain = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 1))
    places = np.random.default_rng(seed).uniform([-1, 0], [1, 1], (READINGS, 2))
    values, is_bad = spoil(solution(places), seed + 1, good=0.05, bad=0.7)
    data = dde.data.TimePDE(
        domain,
        equation,
        [
            dde.icbc.DirichletBC(domain, solution, lambda _, there: there),
            dde.icbc.PointSetBC(places, values),
        ],
        num_domain=100,
        num_boundary=20,
    )
    net = dde.nn.FNN([2, 32, 32, 32, 1], "tanh", "Glorot uniform")
    model = dde.Model(data, net)
    model.compile("adam", lr=1e-3, external_trainable_variables=coefficient, verbose=0)
    unknowns = {"C": coefficient}
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 41), np.linspace(0, 1, 41)), -1).reshape(-1, 2)

    def errors():
        field = relative(model.predict(grid), solution(grid))
        return {**coefficient_errors(unknowns, {"C": 1.0}), "u": field}

    return Case("diffusion", model, unknowns, 6_000, errors, is_bad)


if __name__ == "__main__":
    main(build)
