"""An MLP from PyTorch opens here and back: weights, masks, units and predictions to rounding."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch.nn import Linear, Module, Sequential, Tanh  # noqa: E402

import unpinn  # noqa: E402
from unpinn import UserError, precision  # noqa: E402
from unpinn.adapters import load_mlp, save_mlp  # noqa: E402
from unpinn.adapters.torch import from_torch, to_fit, to_torch  # noqa: E402
from unpinn.adapters.torch._convert import ACTIVATIONS  # noqa: E402
from unpinn.adapters.torch._masks import silence  # noqa: E402
from unpinn.network import ACTIVATIONS as OWN  # noqa: E402
from unpinn.network import MLP, ResidualMLP  # noqa: E402
from unpinn.problem import observe  # noqa: E402
from unpinn.training import Adam, Protocol, train  # noqa: E402

POINTS = np.random.default_rng(0).uniform(-1, 1, (25, 2))
KINDS = {"float32": (torch.float32, 2e-6), "float64": (torch.float64, 1e-14)}


class Own(Module):
    """An MLP that is no Sequential, with its layers declared in another order."""

    def __init__(self):
        super().__init__()
        self.last, self.middle, self.first = Linear(6, 3), Linear(9, 6, bias=False), Linear(2, 9)

    def forward(self, x):
        return self.last(torch.sin(self.middle(torch.sin(self.first(x)))))


def predicted(mlp: MLP) -> np.ndarray:
    kind = precision.of(mlp)
    with precision.scope(kind):
        return np.asarray(mlp(jnp.asarray(POINTS, np.dtype(kind))))


def told(module) -> np.ndarray:
    inputs = torch.as_tensor(POINTS, dtype=next(module.parameters()).dtype)
    return module(inputs).detach().numpy()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_mlp_travels_from_pytorch_and_back(name, kind, tmp_path):
    dtype, rounding = KINDS[kind]
    torch.manual_seed(1)
    act = ACTIVATIONS[name]
    module = Sequential(Linear(2, 9), act(), Linear(9, 6), act(), Linear(6, 3)).to(dtype)
    save_mlp(module, tmp_path / "net.safetensors")
    mlp = load_mlp(tmp_path / "net.safetensors")
    assert mlp.activation == name and precision.of(mlp) == kind
    np.testing.assert_allclose(predicted(mlp), told(module), rtol=0, atol=rounding)
    back = to_torch(mlp)
    for own, given in zip(back.state_dict().values(), module.state_dict().values(), strict=True):
        assert torch.equal(own, given)
    # What was written is a state dictionary that PyTorch alone can open.
    module.load_state_dict(load_file(tmp_path / "net.safetensors"))


def test_every_activation_of_this_package_has_a_pytorch_one():
    assert set(ACTIVATIONS) == set(OWN)


def test_a_state_dictionary_written_by_pytorch_opens_when_told_its_activation(tmp_path):
    torch.manual_seed(2)
    module = Sequential(Linear(2, 5), Tanh(), Linear(5, 1))
    save_file(module.state_dict(), tmp_path / "theirs.safetensors")
    with pytest.raises(UserError, match="does not say its activation; pass one"):
        load_mlp(tmp_path / "theirs.safetensors")
    mlp = load_mlp(tmp_path / "theirs.safetensors", activation="tanh")
    np.testing.assert_allclose(predicted(mlp), told(module), atol=2e-6)


def test_layers_are_followed_as_they_are_called_not_as_they_are_named():
    torch.manual_seed(3)
    module = Own().double()
    mlp = from_torch(module)
    assert mlp.activation == "sin"
    np.testing.assert_allclose(predicted(mlp), told(module), rtol=0, atol=1e-14)


def test_masked_neurons_are_left_out():
    torch.manual_seed(4)
    module = Sequential(Linear(2, 7), Tanh(), Linear(7, 1)).double()
    silence(module[2], np.array([0, 3]), np.full(7, 0.5)[[0, 3]])
    mlp = from_torch(module)
    assert mlp.hidden[0].weight.shape == (5, 2)
    np.testing.assert_allclose(predicted(mlp), told(module), rtol=0, atol=1e-14)


def oscillation() -> unpinn.Problem:
    return unpinn.Problem(
        coordinates={"x": (10, 30), "t": (0, 1e-3)},
        fields=["u"],
        unknowns=[unpinn.Scalar("c", initial=2.0)],
        equations={"wave": lambda u, c: u.t - c * u.x},
        collocation=unpinn.Grid(4, 4),
    )


def test_a_fit_in_its_own_units_becomes_a_module_in_the_users():
    problem = oscillation()
    points = np.random.default_rng(1).uniform([10, 0], [30, 1e-3], (30, 2))
    read = observe(problem, points, {"u": 500 + 40 * np.sin(points[:, 0])})
    fit = train(problem, read, Protocol((Adam(epochs=5),), scaled=True), seed=0)
    expected = fit.predict(points, "u")
    module = to_torch(fit)
    inputs = torch.as_tensor(points, dtype=torch.float32)
    np.testing.assert_allclose(module(inputs)[:, 0].detach(), expected, rtol=1e-5)
    again = to_fit(module.double(), problem, read, {"c": 3.0})
    np.testing.assert_allclose(again.predict(points, "u"), expected, rtol=1e-5)
    assert again.unknowns == {"c": pytest.approx(3.0)}
    assert again.residual(points).shape == (30, 1)


class Skip(Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Linear(2, 4), Linear(4, 4), Linear(4, 1)

    def forward(self, x):
        z = torch.tanh(self.a(x))
        return self.c(z + torch.tanh(self.b(z)))


def plain():
    return Sequential(Linear(2, 4), Tanh(), Linear(4, 1))


BAD = {
    "no hidden layer": (lambda: Linear(2, 1), "no hidden linear layer"),
    "a skip": (Skip, "no plain MLP with one of the activations"),
    "a foreign activation": (
        lambda: Sequential(Linear(2, 4), torch.nn.ELU(), Linear(4, 1)), "no plain MLP with one"
    ),
    "more than its layers": (
        lambda: Sequential(Linear(2, 4), Tanh(), Linear(4, 1), Tanh()), "does more than its linear"
    ),
    "no numbers": (lambda: plain().to("meta"), "on the device 'meta'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_module_that_is_no_mlp_is_refused(case):
    make, message = BAD[case]
    with pytest.raises(UserError, match=message):
        from_torch(make())


def test_what_does_not_fit_the_problem_is_refused(tmp_path):
    with pytest.raises(UserError, match="gives 2 columns, but the problem has 2 and 1"):
        to_fit(Sequential(Linear(2, 4), Tanh(), Linear(4, 2)), oscillation())
    streams = ResidualMLP.make(jax.random.key(0), inputs=2, outputs=1, width=4, depth=2)
    with pytest.raises(UserError, match="only an MLP can go to PyTorch, not ResidualMLP"):
        to_torch(streams)
    with pytest.raises(UserError, match="writes an MLP or a PyTorch module, not dict"):
        save_mlp({}, tmp_path / "x.safetensors")


FILES = {
    "no part of a plain MLP": {"embed": torch.ones(3)},
    "has no '0.weight' to go with '0.bias'": {"0.bias": torch.ones(3)},
    "does not fit the one before": {"0.weight": torch.ones(4, 2), "2.weight": torch.ones(1, 3)},
    "has no hidden layer": {"0.weight": torch.ones(4, 2)},
}


@pytest.mark.parametrize("message", FILES)
def test_a_file_that_holds_no_mlp_is_refused(message, tmp_path):
    save_file(FILES[message], tmp_path / "bad.safetensors")
    with pytest.raises(UserError, match=message):
        load_mlp(tmp_path / "bad.safetensors", activation="tanh")


def test_an_activation_that_contradicts_the_file_is_refused(tmp_path):
    mlp = MLP.make(jax.random.key(0), inputs=2, outputs=1, width=4, depth=1)
    save_mlp(mlp, tmp_path / "net.safetensors")
    with pytest.raises(UserError, match="holds a network with tanh, not with sin"):
        load_mlp(tmp_path / "net.safetensors", activation="sin")
