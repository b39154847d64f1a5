"""Hidden layers are found by asking the module, whatever its `forward` looks like."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")

from torch.nn import Linear, Module, ModuleDict, Sequential, Tanh  # noqa: E402

from unpinn import UserError  # noqa: E402
from unpinn.adapters.torch import TorchPrunable, find_layers  # noqa: E402

POINTS = torch.linspace(-1, 1, 30)[:, None] * torch.tensor([[1.0, -0.5]])


class Residual(Module):
    """A stream to which two blocks add."""

    def __init__(self):
        super().__init__()
        self.lift = Linear(2, 8)
        self.blocks = torch.nn.ModuleList(
            Sequential(Linear(8, 6), Tanh(), Linear(6, 8)) for _ in (0, 1)
        )
        self.out = Linear(8, 1)

    def forward(self, x):
        stream = torch.tanh(self.lift(x))
        for block in self.blocks:
            stream = stream + torch.tanh(block(stream))
        return self.out(stream)


class Odd(Module):
    """Features, a gate, a concatenation, a layer that is used twice and one that is not used."""

    def __init__(self):
        super().__init__()
        self.part = ModuleDict({"left": Linear(4, 5), "right": Linear(2, 7), "gate": Linear(2, 7)})
        self.joint = Linear(12, 6)
        self.twice = Linear(6, 6)
        self.out = Linear(6, 2)
        self.unused = Linear(3, 3)

    def forward(self, x):
        features = torch.cat([x, torch.sin(x)], dim=1)
        right = torch.sin(self.part["right"](x)) * torch.sigmoid(self.part["gate"](x))
        together = torch.cat([right, torch.tanh(self.part["left"](features))], dim=1)
        z = torch.tanh(self.joint(together))
        z = torch.tanh(self.twice(torch.tanh(self.twice(z))))
        return self.out(z)


def chain():
    return Sequential(Linear(2, 9), Tanh(), Linear(9, 6), Tanh(), Linear(6, 1))


def forward(module, x):
    return module(x)


def found(make, names=None):
    torch.manual_seed(1)
    module = make()
    return module, find_layers(module, POINTS, forward, names)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (chain, {"0": ("2",), "2": ("4",)}),
        # The stream's neurons are no layer's own; the blocks' are.
        (Residual, {"blocks.0.0": ("blocks.0.2",), "blocks.1.0": ("blocks.1.2",)}),
        (Odd, {"part.left": ("joint",)}),
    ],
)  # fmt: skip
def test_layers_with_neurons_of_their_own_are_found_with_those_that_read_them(make, expected):
    _, layers = found(make)
    assert {lay.name: tuple(part.layer for part in lay.reads) for lay in layers} == expected


def test_neurons_are_followed_through_a_concatenation():
    _, (left,) = found(Odd)
    assert left.reads[0].places.tolist() == [7, 8, 9, 10, 11]


def test_coupled_neurons_are_found_together_when_named():
    _, (gated,) = found(Odd, ["part.gate"])
    assert gated.coupled and gated.name == "part.right + part.gate"
    _, (stream,) = found(Residual, ["lift"])
    assert [part.layer for part in stream.writes] == ["lift", "blocks.0.2", "blocks.1.2"]
    assert [part.layer for part in stream.reads] == ["blocks.0.0", "blocks.1.0", "out"]


@pytest.mark.parametrize(
    ("make", "names"),
    [(chain, None), (Residual, None), (Residual, ["lift"]), (Odd, None), (Odd, ["part.gate"])],
)
def test_a_found_neuron_is_fed_and_read_as_told(make, names):
    """The law that makes a layer prunable: silencing what writes equals silencing what reads."""
    module, layers = found(make, names)
    for number, layer in enumerate(layers):
        neurons = np.array([0, layer.width - 1])
        seen = TorchPrunable(module, POINTS, forward, layers, np.ones(len(POINTS), bool))
        mute = seen.remove(number, neurons, np.zeros(layer.width))
        expected = mute.module(POINTS)
        assert not torch.equal(expected, module(POINTS))
        # What the dead neurons would have been no longer matters.
        with torch.no_grad():
            for part in layer.writes:
                writer = mute.module.get_submodule(part.layer)
                writer.weight[part.places[neurons]] = 5.0
                writer.bias[part.places[neurons]] = -3.0
        assert torch.equal(mute.module(POINTS), expected)
        assert np.flatnonzero(~mute.alive()[number]).tolist() == neurons.tolist()


def test_activations_are_what_the_next_layer_gets():
    module, layers = found(chain)
    seen = TorchPrunable(module, POINTS, forward, layers, np.ones(len(POINTS), bool))
    first = torch.tanh(module[0](POINTS))
    second = torch.tanh(module[2](first))
    for told, truth in zip(seen.activations(), (first, second), strict=True):
        np.testing.assert_allclose(told, truth.detach().numpy(), rtol=1e-6)


def test_a_mean_is_handed_on_to_every_layer_that_reads():
    """A neuron that is the same everywhere leaves without a trace, also from a residual stream."""
    torch.manual_seed(2)
    module = Residual()
    with torch.no_grad():
        for writer in (module.lift, module.blocks[0][2], module.blocks[1][2]):
            writer.weight[3] = 0.0
    layers = find_layers(module, POINTS, forward, ["lift"])
    seen = TorchPrunable(module, POINTS, forward, layers, np.ones(len(POINTS), bool))
    constants = seen.activations()[0].mean(axis=0) * (np.arange(8) == 3)
    smaller = seen.remove(0, np.array([3]), constants)
    torch.testing.assert_close(smaller.module(POINTS), module(POINTS), rtol=0, atol=1e-6)
    assert (module.out.weight[:, 3] != 0).all(), "the module that was given must stay"


@pytest.mark.parametrize(
    ("make", "names", "told"),
    [
        (chain, ["4"], "the layer '4' cannot be pruned: it feeds the output directly"),
        (chain, ["O"], "has no linear layer 'O' (0, 2, 4)"),
        (Odd, ["part.gat"], "did you mean 'part.gate'"),
        (Odd, ["unused"], "it is never called"),
        (lambda: Linear(2, 1), None, "no hidden linear layer"),
        (lambda: Sequential(Linear(2, 4), torch.nn.Softmax(1), Linear(4, 1)), None, "mixed"),
    ],
)
def test_what_cannot_be_pruned_is_named(make, names, told):
    with pytest.raises(UserError, match=told.replace("(", r"\(").replace(")", r"\)")):
        found(make, names)
