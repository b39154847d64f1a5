"""The source q(x) of u'' = q on [-1, 1], from readings of u = sin(pi x); q = -pi^2 sin(pi x)."""

from __future__ import annotations

import numpy as np
from noise import Case, main, relative, spoil

import deepxde as dde  # isort: skip

READINGS = 200


def solution(x: np.ndarray) -> np.ndarray:
    return np.sin(np.pi * x)


def build(seed: int) -> Case:
    dde.config.set_random_seed(seed)

    def equation(x, fields):
        u_xx = dde.grad.hessian(fields, x, component=0, i=0, j=0)
        return u_xx - fields[:, 1:2]

    domain = dde.geometry.Interval(-1, 1)
    places = np.random.default_rng(seed).uniform(-1, 1, (READINGS, 1))
    values, is_bad = spoil(solution(places), seed + 1, good=0.02, bad=0.5)
    fixed = dde.icbc.DirichletBC(domain, solution, lambda _, there: there, component=0)
    data = dde.data.PDE(
        domain,
        equation,
        [fixed, dde.icbc.PointSetBC(places, values, component=0)],
        num_domain=100,
        num_boundary=2,
    )
    # One network for u and one for q, side by side.
    net = dde.nn.PFNN([1, [20, 20], [20, 20], [20, 20], 2], "tanh", "Glorot uniform")
    # q is ten times as large as u.
    net.apply_output_transform(lambda _, y: y * y.new_tensor([1.0, 10.0]))
    model = dde.Model(data, net)
    model.compile("adam", lr=1e-3, loss_weights=[0.01, 1, 1], verbose=0)
    grid = np.linspace(-1, 1, 201)[:, None]

    def errors():
        u, q = model.predict(grid).T
        return {
            "q": relative(q[:, None], -(np.pi**2) * solution(grid)),
            "u": relative(u[:, None], solution(grid)),
        }

    return Case("elliptic", model, {}, 6_000, errors, is_bad)


if __name__ == "__main__":
    main(build)
