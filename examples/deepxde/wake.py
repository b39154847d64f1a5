"""Both coefficients of the Navier-Stokes equations, from velocities read behind a cylinder.

    u_t + a (u u_x + v u_y) + p_x - b (u_xx + u_yy) = 0,  and so for v,  u_x + v_y = 0

on [1, 8] x [-2, 2], 0 <= t <= 7; a is 1 and b is 0.01. The wake is the one this package carries.
"""

from __future__ import annotations

import numpy as np
from noise import Case, coefficient_errors, main, relative, spoil

import deepxde as dde  # isort: skip

from unpinn.benchmarks import load_wake

TRUTH = {"a": 1.0, "b": 0.01}
READINGS = 1_000


def velocities(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Some places and times (n, 3) with the velocity there (n, 2)."""
    wake = load_wake()
    early = wake.time <= 7.0
    x, y, t = np.meshgrid(wake.x, wake.y, wake.time[early], indexing="ij")
    rows = np.random.default_rng(seed).choice(x.size, count, replace=False)
    places = np.stack([x.ravel(), y.ravel(), t.ravel()], 1)[rows]
    return places, np.stack([part[:, :, early].ravel()[rows] for part in (wake.u, wake.v)], 1)


def build(seed: int) -> Case:
    dde.config.set_random_seed(seed)
    a, b = dde.Variable(0.0), dde.Variable(0.0)

    def momentum(x, fields, k):
        along, across = fields[:, 0:1], fields[:, 1:2]
        d_x, d_y, d_t = (dde.grad.jacobian(fields, x, i=k, j=j) for j in range(3))
        bent = sum(dde.grad.hessian(fields, x, component=k, i=j, j=j) for j in range(2))
        push = dde.grad.jacobian(fields, x, i=2, j=k)
        return d_t + a * (along * d_x + across * d_y) + push - b * bent

    def flow(x, fields):
        spread = [dde.grad.jacobian(fields, x, i=k, j=k) for k in range(2)]
        return [spread[0] + spread[1], momentum(x, fields, 0), momentum(x, fields, 1)]

    space = dde.geometry.Rectangle([1, -2], [8, 2])
    domain = dde.geometry.GeometryXTime(space, dde.geometry.TimeDomain(0, 7))
    places, exact = velocities(seed, READINGS)
    values, is_bad = spoil(exact, seed + 1, good=0.05, bad=0.5)
    read = [dde.icbc.PointSetBC(places, values[:, k : k + 1], component=k) for k in range(2)]
    data = dde.data.TimePDE(domain, flow, read, num_domain=700)
    net = dde.nn.FNN([3, 40, 40, 40, 40, 3], "tanh", "Glorot uniform")
    middle, half = np.array([4.5, 0.0, 3.5]), np.array([3.5, 2.0, 3.5])
    net.apply_feature_transform(lambda x: (x - x.new_tensor(middle)) / x.new_tensor(half))
    model = dde.Model(data, net)
    model.compile("adam", lr=2e-3, external_trainable_variables=[a, b], verbose=0)
    unknowns = {"a": a, "b": b}
    grid, truth = velocities(0, 5_000)

    def errors():
        velocity = relative(model.predict(grid)[:, :2], truth)
        return {**coefficient_errors(unknowns, TRUTH), "velocity": velocity}

    return Case("wake", model, unknowns, 4_000, errors, is_bad)


if __name__ == "__main__":
    main(build)
