"""What a module's or a model's owner can get wrong: one sentence each, before any work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")

from torch.nn import Linear, Module, Parameter, Sequential, Tanh  # noqa: E402

from unpinn import UserError  # noqa: E402
from unpinn.adapters.torch import unlearn  # noqa: E402
from unpinn.training import Adam  # noqa: E402
from unpinn.unlearning import default_recipe  # noqa: E402

from .conftest import deepxde_model  # noqa: E402

POINTS = np.linspace(0, 2, 30)


def plain() -> Sequential:
    torch.manual_seed(0)
    return Sequential(Linear(1, 6), Tanh(), Linear(6, 1))


def decay(module, x):
    u = module(x)
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0] + u


def frozen(*names: str) -> Module:
    module = plain()
    for name in names:
        module.get_submodule(name).requires_grad_(False)
    return module


def on_two_devices() -> Module:
    module = plain()
    module[2] = Linear(6, 1, device="meta")
    return module


class Hoarder(Sequential):
    """Keeps a tensor of its last pass, which cannot be copied."""

    def forward(self, x):
        self.kept = super().forward(x)
        return self.kept


def hoarder() -> Module:
    module = Hoarder(Linear(1, 6), Tanh(), Linear(6, 1))
    module(torch.ones(1, 1))
    return module


MODULES = {
    "no hidden linear layer": lambda: Linear(1, 1),
    "needs a torch.nn.Module, not function": lambda: decay,
    "has no parameters": Tanh,
    "on the device 'meta', which holds no numbers": lambda: plain().to("meta"),
    "on the device 'meta'": on_two_devices,
    "the layer '0' is frozen": lambda: frozen("0"),
    "the layer '2' is frozen": lambda: frozen("2"),
    "all parameters of the module are frozen": lambda: frozen("0", "2"),
    "no better than a constant does": plain,
    "cannot be copied": hoarder,
    r"cannot be evaluated at points with 1 coordinates": lambda: Sequential(
        Linear(2, 6), Tanh(), Linear(6, 1)
    ),
    r"must give a tensor \(2, outputs\) at 2 points, not \(12,\)": lambda: Sequential(
        Linear(1, 6), Tanh(), torch.nn.Flatten(0)
    ),
}


@pytest.mark.parametrize("told", MODULES)
def test_a_module_that_cannot_be_unlearnt(told):
    with pytest.raises(UserError, match=told):
        unlearn(MODULES[told](), POINTS, np.exp(-POINTS), decay)


RESIDUALS = {
    "a row and a column": (lambda m, x: m(x)[:, 0] + x, r"has the shape \(30, 30\) at 30 points"),
    "a number": (lambda m, x: m(x).sum(), r"has the shape \(\) at 30 points"),
    "too few": (lambda m, x: m(x)[:7], r"has the shape \(7, 1\) at 30 points"),
    "one of two": (lambda m, x: [m(x), m(x)[:, 0] + x], "equation 2 of the residual has the shape"),
    "an array": (lambda m, x: m(x).detach().numpy(), "must give tensors, not ndarray"),
    "none": (lambda m, x: [], "the residual gave no equation"),
    "no gradient": (lambda m, x: m(x).detach(), "carries no gradient.*create_graph=True"),
    "not finite": (lambda m, x: m(x) / 0, "not finite at some reading"),
}  # fmt: skip


@pytest.mark.parametrize("case", RESIDUALS)
def test_a_residual_of_the_wrong_shape(case):
    residual, told = RESIDUALS[case]
    with pytest.raises(UserError, match=told):
        unlearn(plain(), POINTS, np.exp(-POINTS), residual, untrained=True)


def number(value=1.0, **options):
    return torch.tensor(value, **options)


OPTIONS = {
    "the unknown 'k' is not trained": {"unknowns": {"k": number()}},
    "the unknown 'k' must be a tensor of one number": {"unknowns": {"k": Parameter(torch.ones(2))}},
    "the unknown 'k' is on meta, but the module is on cpu": {
        "unknowns": {"k": Parameter(torch.tensor(1.0, device="meta"))}
    },
    "has 1 outputs; say which in columns": {"columns": [1]},
    "the values have 1 columns, but columns names 2": {"columns": [0, 0]},
    "the collocation points have 2 columns": {"collocation": np.ones((4, 2))},
    "2 sizes, but the residual has 1 components": {"sizes": [1.0, 2.0]},
    "must be finite and above zero": {"sizes": 0.0},
    "no linear layer '1'": {"layers": ["1"]},
    "cannot do 'balance' of Adam": {
        "recipe": replace(default_recipe(), stages=(Adam(epochs=1, balance=True),))
    },
}


@pytest.mark.parametrize("told", OPTIONS)
def test_options_that_do_not_fit(told):
    with pytest.raises(UserError, match=told):
        unlearn(plain(), POINTS, np.exp(-POINTS), decay, untrained=True, **OPTIONS[told])


READINGS = {
    "30 points but 29 values": (POINTS, POINTS[:-1]),
    "a coordinate that is not finite in row 0": (np.where(POINTS == 0, np.nan, POINTS), POINTS),
    "row 4 of the values reads nothing": (POINTS, np.where(np.arange(30) == 4, np.nan, POINTS)),
    "the values must be numbers": (POINTS, ["a"] * 30),
    "the points must have two axes": (np.ones((2, 2, 2)), POINTS),
    "on the device 'meta'": (torch.ones(30, device="meta"), POINTS),
}


@pytest.mark.parametrize("told", READINGS)
def test_readings_that_are_none(told):
    points, values = READINGS[told]
    with pytest.raises(UserError, match=told):
        unlearn(plain(), points, values, decay, untrained=True)


# -- DeepXDE --------------------------------------------------------------------------------


def meta(model, k):
    model.net.to("meta")


def freeze(model, k):
    model.net.requires_grad_(False)


def freeze_one(model, k):
    model.net.linears[1].requires_grad_(False)


def forget_training(model, k):
    for linear in model.net.linears:
        torch.nn.init.normal_(linear.weight, std=3.0)


def no_readings(model, k):
    model.data.bcs = []


def no_equation(model, k):
    model.data.pde = None


def twice(model, k):
    model.data.bcs = [model.data.bcs[0], model.data.bcs[0]]


def wrong_shape(model, k):
    model.data.pde = lambda x, y: y[:, 0] + k * y[:, 0:1]


def uncompiled(model, k):
    model.opt = None


MODELS = {
    "parameters are on the device 'meta'": meta,
    "all parameters of the module are frozen": freeze,
    "the layer 'linears.1' is frozen": freeze_one,
    "no better than a constant does": forget_training,
    "the model has no readings": no_readings,
    "the model has no equation": no_equation,
    "two sets of observations read the same output": twice,
    r"residual has the shape \(120, 120\)": wrong_shape,
    "the model was not compiled": uncompiled,
}


@pytest.mark.parametrize("told", MODELS)
def test_a_model_that_cannot_be_unlearnt(told, case, double):
    from unpinn.adapters.deepxde import unlearn

    model, k = deepxde_model(case)
    MODELS[told](model, k)
    with pytest.raises(UserError, match=told):
        unlearn(model, unknowns={"k": k})


def test_what_is_no_such_model_is_named(case, double, monkeypatch):
    from unpinn.adapters.deepxde import unlearn

    model, _ = deepxde_model(case)
    other = double.icbc.PointSetBC(case.points, case.values[:, :1])
    for options, told in [
        ({"unknowns": {"q": double.Variable(1.0)}}, "'q' is not trained by this model"),
        ({"observations": [other]}, "is not among the model's own ones"),
        ({"iterations": -1}, "zero or more, not -1"),
        ({"sizes": [1, 2, 3]}, "3 sizes, but the residual has 2 components"),
    ]:
        with pytest.raises(UserError, match=told):
            unlearn(model, **options)
    with pytest.raises(UserError, match=r"needs a deepxde\.Model, not Sequential"):
        unlearn(plain())
    function = double.data.Function(double.geometry.Interval(0, 2), np.sin, 4, 4)
    network = double.nn.FNN([1, 5, 1], "tanh", "Glorot uniform")
    fitted = double.Model(function, network)
    fitted.compile("adam", lr=0.01, verbose=0)
    with pytest.raises(UserError, match=r"data is Function; .* only dde\.data\.PDE"):
        unlearn(fitted)
    monkeypatch.setattr(double.backend, "backend_name", "jax")
    with pytest.raises(UserError, match="on the backend 'jax', and its networks are flax modules"):
        unlearn(model)
