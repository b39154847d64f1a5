"""Two equations with one unknown, readings of which some are bad, and a module trained on them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")

RATE = 1.3


def exact(x: np.ndarray) -> np.ndarray:
    """u' = -k u and v' = u with u(0) = 1, v(0) = 0."""
    decay = np.exp(-RATE * x)
    return np.concatenate([decay, (1 - decay) / RATE], axis=1)


def slopes(module, x) -> list[Any]:
    """Derivatives of both outputs, (n, 1) each."""
    out = module(x)
    return [torch.autograd.grad(out[:, k].sum(), x, create_graph=True)[0] for k in range(2)]


class System(torch.nn.Module):
    """A network and the unknown k, in one module, with a `forward` of its own."""

    def __init__(self, width: int = 14):
        super().__init__()
        self.first = torch.nn.Linear(1, width)
        self.second = torch.nn.Linear(width, width)
        self.last = torch.nn.Linear(width, 2)
        self.k = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))

    def residual(self, x):
        u_x, v_x = slopes(self, x)
        u = self(x)[:, 0:1]
        return [u_x + self.k * u, v_x - u]


@dataclass
class Case:
    """Readings, which of them are bad, and the module that was trained on all of them."""

    points: np.ndarray
    values: np.ndarray
    is_bad: np.ndarray
    module: System

    def copy(self) -> System:
        return copy.deepcopy(self.module)

    def unlearn(self, module=None, **options):
        from unpinn.adapters.torch import unlearn

        module = self.copy() if module is None else module
        options = {"unknowns": {"k": module.k}, **options}
        return unlearn(module, self.points, self.values, System.residual, **options)


def train(module, points, values, epochs: int = 500) -> None:
    """On all readings and the equations at their points."""
    x = torch.as_tensor(points).requires_grad_(True)
    read = torch.as_tensor(values)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(epochs):
        optimiser.zero_grad()
        loss = ((module(x) - read) ** 2).mean()
        loss = loss + 0.1 * sum((r**2).mean() for r in module.residual(x))
        loss.backward()
        optimiser.step()


@pytest.fixture(scope="session")
def case() -> Case:
    random = np.random.default_rng(3)
    points = np.sort(random.uniform(0, 2, (120, 1)), axis=0)
    is_bad = random.random(120) < 0.4
    # Bad readings err to one side, so that all readings together give a wrong k.
    noise = np.where(is_bad[:, None], 0.6, 0.02) * random.standard_normal((120, 2))
    values = exact(points) + noise + 0.3 * is_bad[:, None]
    torch.manual_seed(0)
    module = System().double()
    train(module, points, values)
    return Case(points, values, is_bad, module)


def deepxde_model(case: Case, module: System | None = None, compile_with=None, **data):
    """The same network, unknown, readings and equations as a DeepXDE model, not trained further."""
    dde = pytest.importorskip("deepxde", reason="needs the extra unpinn[deepxde]")
    module = case.module if module is None else module
    k = dde.Variable(float(module.k.detach()), dtype=module.k.dtype)

    def system(x, y):
        u_x, v_x = (dde.grad.jacobian(y, x, i=number, j=0) for number in range(2))
        return [u_x + k * y[:, 0:1], v_x - y[:, 0:1]]

    read = [
        dde.icbc.PointSetBC(case.points, case.values[:, number : number + 1], component=number)
        for number in range(2)
    ]
    options = {"anchors": case.points, **data}
    bcs = [*options.pop("bcs", ()), *read]
    net = dde.nn.FNN([1, 14, 14, 2], "tanh", "Glorot uniform")
    layers = (module.first, module.second, module.last)
    with torch.no_grad():
        for own, given in zip(net.linears, layers, strict=True):
            own.weight.copy_(given.weight)
            own.bias.copy_(given.bias)
    model = dde.Model(dde.data.PDE(dde.geometry.Interval(0, 2), system, bcs, **options), net)
    settings = {"optimizer": "adam", "lr": 0.005, **(compile_with or {})}
    model.compile(external_trainable_variables=[k], verbose=0, **settings)
    return model, k


@pytest.fixture
def double():
    """DeepXDE in float64, as the module of `case` is; back to float32 afterwards."""
    dde = pytest.importorskip("deepxde", reason="needs the extra unpinn[deepxde]")
    dde.config.set_default_float("float64")
    yield dde
    dde.config.set_default_float("float32")
