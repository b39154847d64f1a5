"""Training cannot bring a removed neuron back, and compaction changes nothing but the size."""

from __future__ import annotations

import copy
import io
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")

from torch.nn import Linear, Module, Sequential, Tanh  # noqa: E402

from unpinn.adapters.torch import TorchPrunable, compacted, find_layers  # noqa: E402

POINTS = torch.linspace(-1, 1, 40, dtype=torch.float64)[:, None]
DEAD = np.array([1, 4, 5])


class Residual(Module):
    """A residual stream, whose neurons several layers write and read."""

    def __init__(self):
        super().__init__()
        self.lift = Linear(1, 8)
        self.block = Sequential(Linear(8, 6), Tanh(), Linear(6, 8))
        self.out = Linear(8, 1)

    def forward(self, x):
        stream = torch.tanh(self.lift(x))
        return self.out(stream + self.block(stream))


def chain():
    return Sequential(Linear(1, 8), Tanh(), Linear(8, 8), Tanh(), Linear(8, 1))


def forward(module, x):
    return module(x)


def pruned(make, names=None) -> TorchPrunable:
    torch.manual_seed(0)
    module = make().double()
    layers = find_layers(module, POINTS, forward, names)
    seen = TorchPrunable(module, POINTS, forward, layers, np.ones(len(POINTS), bool))
    for number in range(len(layers)):
        mean = seen.activations()[number].mean(axis=0)
        handed = np.zeros_like(mean)
        handed[DEAD] = mean[DEAD]
        seen = seen.remove(number, DEAD, handed)
    return seen


def optimiser(kind, module):
    if kind == "adam":
        # Moments and decay from before the pruning would push a plain zero away.
        made = torch.optim.AdamW(module.parameters(), lr=0.05, weight_decay=0.1)
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)
        made.step()
        return made
    return torch.optim.LBFGS(module.parameters(), max_iter=20, line_search_fn="strong_wolfe")


@pytest.mark.parametrize("kind", ["adam", "lbfgs"])
def test_training_cannot_revive_a_removed_neuron(kind):
    seen = pruned(chain)
    module = seen.module
    stepper = optimiser(kind, module)

    def closure():
        stepper.zero_grad()
        loss = ((module(POINTS) - torch.sin(3 * POINTS)) ** 2).mean()
        loss.backward()
        return loss

    first = float(closure().detach())
    for _ in range(30 if kind == "adam" else 2):
        stepper.step(closure)
    assert float(closure().detach()) < 0.5 * first, "what is alive must learn"
    for reader in (module[2], module[4]):
        assert (reader.weight.grad[:, DEAD] == 0).all()
    expected = module(POINTS)
    with torch.no_grad():
        for writer, reader in ((module[0], module[2]), (module[2], module[4])):
            writer.bias[DEAD] += 10.0
            reader.weight[:, DEAD] += 10.0
    assert torch.equal(module(POINTS), expected)


def test_a_saved_state_has_the_old_names_and_is_right_without_the_masks():
    seen = pruned(chain)
    torch.manual_seed(0)
    plain = chain().double()
    assert list(seen.module.state_dict()) == list(plain.state_dict())
    stored = io.BytesIO()
    torch.save(seen.module.state_dict(), stored)
    stored.seek(0)
    plain.load_state_dict(torch.load(stored, weights_only=True))
    torch.testing.assert_close(plain(POINTS), seen.module(POINTS))


def test_a_chain_is_compacted_to_the_same_function_of_the_same_class():
    seen = pruned(chain)
    small = compacted(seen)
    assert small.told == "compacted 0, 2"
    shapes = [small.module[layer].weight.shape for layer in (0, 2, 4)]
    assert shapes == [(5, 1), (5, 5), (1, 5)]
    assert type(small.module) is Sequential
    assert (small.module[2].in_features, small.module[2].out_features) == (5, 5)
    torch.testing.assert_close(small.module(POINTS), seen.module(POINTS))
    small.module(POINTS).sum().backward()
    assert all(p.grad.shape == p.shape for p in small.module.parameters())
    assert not small.module[2]._forward_pre_hooks, "no mask is left to pay for"


def test_a_residual_stream_is_compacted_through_the_dependency_graph():
    pytest.importorskip("torch_pruning", reason="needs the extra unpinn[prune]")
    seen = pruned(Residual, ["lift"])
    small = compacted(seen)
    assert small.told == "compacted lift + block.2 through torch-pruning"
    assert (small.module.lift.out_features, small.module.out.in_features) == (5, 5)
    assert small.module.block[0].weight.shape == (6, 5)
    torch.testing.assert_close(small.module(POINTS), seen.module(POINTS))


def test_without_the_extra_masks_stay_and_this_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_pruning", None)
    seen = pruned(Residual, ["lift"])
    same = compacted(seen)
    assert same.told.startswith("masks only for lift + block.2") and "unpinn[prune]" in same.told
    assert same.module.lift.out_features == 8
    assert torch.equal(same.module(POINTS), seen.module(POINTS))


def test_a_module_that_counts_its_neurons_keeps_its_masks():
    """Where cutting gives another function, or none, the masked module is what comes back."""

    class Scaled(Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = Linear(1, 8), Linear(8, 1)

        def forward(self, x):
            hidden = torch.tanh(self.first(x))
            return self.last(hidden) / hidden.shape[1]

    seen = pruned(Scaled)
    kept = compacted(seen)
    assert kept.told.startswith("masks only for first")
    torch.testing.assert_close(kept.module(POINTS), seen.module(POINTS))


def test_a_copied_module_keeps_its_masks():
    seen = pruned(chain)
    twin = copy.deepcopy(seen.module)
    with torch.no_grad():
        twin[2].weight[:, DEAD] = 1.0
    assert torch.equal(twin(POINTS), seen.module(POINTS))
