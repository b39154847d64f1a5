"""Unlearning a PyTorch module: whatever its shape, by its owner's training or the default one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")

from torch.nn import Linear, Module, Parameter, Sequential, Tanh  # noqa: E402

import unpinn  # noqa: E402
from unpinn import UserError  # noqa: E402
from unpinn._files import read_arrays  # noqa: E402
from unpinn.adapters.torch import unlearn  # noqa: E402
from unpinn.evaluation import detection  # noqa: E402
from unpinn.report import suspects_table  # noqa: E402
from unpinn.training import Adam, Partition, Pruning  # noqa: E402
from unpinn.unlearning import ByMixture, ByShare, Recipe, Schedule, default_recipe  # noqa: E402

from .conftest import RATE, System, exact  # noqa: E402

# No further fine-tunings, which have tests of their own.
SHORT = replace(default_recipe().scaled_to(0.2), rounds=2, stiffening=None)
BRIEF = Recipe("brief", ByShare(0.5), Schedule(fraction=0.2, steps=2), (Adam(epochs=3),))
GRID = torch.linspace(0, 2, 40, dtype=torch.float64)[:, None]


class Stream(Module):
    """A residual stream with a block whose neurons are its own."""

    def __init__(self):
        super().__init__()
        self.lift, self.out = Linear(1, 8), Linear(8, 1)
        self.block = Sequential(Linear(8, 10), Tanh(), Linear(10, 8))

    def forward(self, x):
        stream = torch.tanh(self.lift(x))
        return self.out(stream + self.block(stream))


class Shared(Module):
    """One layer that is used twice."""

    def __init__(self):
        super().__init__()
        self.first, self.twice, self.out = Linear(1, 10), Linear(10, 10), Linear(10, 1)

    def forward(self, x):
        once = torch.tanh(self.twice(torch.tanh(self.first(x))))
        return self.out(torch.tanh(self.twice(once)))


class Told(Module):
    """A network whose output has to be asked for, after two others."""

    def __init__(self):
        super().__init__()
        self.net = Sequential(Linear(1, 10), Tanh(), Linear(10, 3))

    def forward(self, x):
        return {"fields": self.net(x)}


def chain():
    return Sequential(Linear(1, 10), Tanh(), Linear(10, 10), Tanh(), Linear(10, 1))


def decay(module, x):
    u = module(x)
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0] + u


def tried(make, recipe=BRIEF, residual=decay, **options):
    """An untrained module, unlearnt in no time: what becomes of its shape."""
    torch.manual_seed(0)
    module = make().double()
    points = np.linspace(0, 2, 30)
    options = {"untrained": True, **options}
    return module, unlearn(module, points, np.exp(-points), residual, recipe, **options)


@pytest.fixture(scope="module")
def cleaned(case):
    return case.unlearn(recipe=SHORT)


def test_a_module_is_cleaned_and_the_given_one_stays(case, cleaned):
    given = case.copy()
    again = case.unlearn(given, recipe=SHORT)
    for name, tensor in case.module.state_dict().items():
        assert torch.equal(tensor, given.state_dict()[name]), name
    assert cleaned.status.code == "finished" and cleaned.evidence.accepts
    assert type(cleaned.module) is System and cleaned.module is not given
    assert isinstance(cleaned.partition, Partition) and isinstance(cleaned.pruning, Pruning)
    assert detection(cleaned.partition.score, case.is_bad).auc > 0.9
    assert abs(cleaned.unknowns["k"] - RATE) < 0.5 * abs(cleaned.before.unknowns["k"] - RATE)
    assert cleaned.unknowns["k"] == pytest.approx(float(cleaned.module.k.detach()))
    truth = torch.as_tensor(exact(GRID.numpy()))
    assert (cleaned.module(GRID) - truth).norm() < 0.5 * (case.module(GRID) - truth).norm()
    assert again.unknowns == cleaned.unknowns, "the same again gives the same"


def test_dead_neurons_are_gone_from_a_plain_chain(cleaned):
    assert cleaned.layers == ("first", "second") and cleaned.compaction == "compacted first, second"
    sizes = (cleaned.module.first.out_features, cleaned.module.second.out_features)
    assert sizes == cleaned.pruning.after and max(sizes) < 14
    assert cleaned.module.second.weight.shape == sizes[::-1]


@pytest.mark.parametrize(
    ("make", "names", "layers"),
    [
        (chain, None, ("0", "2")),
        (chain, ["2"], ("2",)),
        (Stream, None, ("block.0",)),
        (Stream, ["block.0"], ("block.0",)),
    ],
)  # fmt: skip
def test_layers_are_found_or_named_and_the_class_is_kept(make, names, layers):
    module, result = tried(make, layers=names)
    assert type(result.module) is type(module) and result.layers == layers
    assert result.compaction == f"compacted {', '.join(layers)}"
    for name, width in zip(layers, result.pruning.after, strict=True):
        assert result.module.get_submodule(name).out_features == width < 10
    untouched = "lift" if make is Stream else "0"
    if untouched not in layers:
        assert result.module.get_submodule(untouched).weight.shape == (
            module.get_submodule(untouched).weight.shape
        )
    assert torch.isfinite(result.module(GRID)).all()


COUPLED = {"a stream": (Stream, ["lift"], "lift + block.2"), "a shared layer": (
    Shared, None, "first + twice")}  # fmt: skip


@pytest.mark.parametrize("which", COUPLED)
def test_coupled_layers_are_compacted_through_torch_pruning(which):
    pytest.importorskip("torch_pruning", reason="needs the extra unpinn[prune]")
    make, names, told = COUPLED[which]
    module, result = tried(make, layers=names)
    assert result.layers == (told,)
    assert result.compaction == f"compacted {told} through torch-pruning"
    assert type(result.module) is type(module)
    first = result.module.get_submodule(told.split(" ")[0])
    assert first.out_features == result.module.out.in_features == result.pruning.after[0] < 8


@pytest.mark.parametrize("which", COUPLED)
def test_without_torch_pruning_coupled_layers_keep_masks_and_say_so(which, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_pruning", None)
    make, names, told = COUPLED[which]
    module, result = tried(make, layers=names, train=lambda module, weight: _shake(module))
    assert result.compaction.startswith(f"masks only for {told}")
    assert "unpinn[prune]" in result.compaction
    assert result.module.out.weight.shape == module.out.weight.shape
    # Shaken weights of dead neurons would show; they do not.
    before = result.module(GRID)
    dead = result.module.out.neuron_mask == 0
    assert int(dead.sum()) == result.pruning.before[0] - result.pruning.after[0] > 0
    with torch.no_grad():
        result.module.out.weight[:, dead] += 5.0
    assert torch.equal(result.module(GRID), before)


def _shake(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1


def test_fine_tuning_may_be_the_owners(case):
    seen = []

    def train(module, weight):
        seen.append((type(module), module.first.out_features, weight.shape))
        assert ((weight >= 0) & (weight <= 1)).all() and weight.min() < 0.5
        with torch.no_grad():
            module.k.fill_(RATE)
        return module

    # A stage that only the package's own training knows does not matter then.
    recipe = Recipe("mine", ByMixture(), Schedule(steps=3), (Adam(epochs=5, balance=True),))
    result = case.unlearn(recipe=recipe, train=train)
    assert seen == [(System, result.pruning.after[0], (120,))]
    assert result.unknowns["k"] == pytest.approx(RATE)
    assert "the function that was passed" in result.status.reason


def test_a_module_that_training_hands_back_is_the_one_that_is_kept(case):
    other = case.copy()
    recipe = replace(SHORT, accept=False, rounds=1)
    result = case.unlearn(recipe=recipe, train=lambda module, weight: other)
    assert result.module is other and result.unknowns["k"] == float(other.k.detach())


def outside(module, x):
    return System.residual(module, x)


@pytest.mark.parametrize("end", ["worse", "nan", "raised"])
def test_where_fine_tuning_does_harm_all_is_as_it_was(case, end):
    k = Parameter(case.module.k.detach().clone())
    given = case.copy()

    def residual(module, x):
        u, v = (module(x)[:, j : j + 1] for j in range(2))
        return torch.autograd.grad(u.sum(), x, create_graph=True)[0] + k * u + 0 * v

    def harm(module, weight):
        with torch.no_grad():
            k.fill_(9.0)
            module.last.weight.fill_(float("nan") if end == "nan" else 3.0)
        if end == "raised":
            raise RuntimeError("the owner's mistake")

    options = {"unknowns": {"k": k}, "train": harm}
    if end == "raised":
        with pytest.raises(RuntimeError, match="the owner's mistake"):
            unlearn(given, case.points, case.values, residual, SHORT, **options)
    else:
        result = unlearn(given, case.points, case.values, residual, SHORT, **options)
        assert result.status.code == "kept" and result.module is given
        assert ("diverged" if end == "nan" else "agree less well") in result.status.reason
        assert result.unknowns == result.before.unknowns
    assert torch.equal(k, case.module.k)
    assert torch.equal(given.last.weight, case.module.last.weight)


def test_an_unknown_outside_the_module_is_trained_where_it_is(case):
    k = Parameter(torch.tensor(0.5, dtype=torch.float64))
    _, result = tried(
        chain, unknowns={"k": k}, residual=lambda module, x: decay(module, x) + (k - 1) * module(x)
    )
    assert result.before.unknowns == {"k": 0.5}
    assert result.unknowns["k"] == float(k.detach()) != 0.5


def test_outputs_are_picked_and_the_module_asked_as_told():
    points = np.linspace(0, 2, 20)
    values = np.stack([np.exp(-points), points], axis=1)
    values[3, 0] = np.nan
    torch.manual_seed(0)
    module = Told().double()
    result = unlearn(
        module, points, values, lambda module, x: module(x)["fields"].sum(dim=1), BRIEF,
        columns=[2, 0], forward=lambda module, x: module(x)["fields"], untrained=True,
    )  # fmt: skip
    expected = module(torch.as_tensor(points)[:, None])["fields"].detach().numpy()
    found = result.before.misfits + values
    assert np.isnan(found[3, 0]) and np.isfinite(found).sum() == 39
    keep = np.isfinite(found)
    np.testing.assert_allclose(found[keep], expected[:, [2, 0]][keep], rtol=1e-12)
    assert result.layers == ("net.0",) and type(result.module) is Told


def test_conditions_and_collocation_take_part_in_the_default_fine_tuning():
    seen = set()

    def residual(module, x):
        seen.add(len(x))
        return decay(module, x)

    pinned = lambda module: 100 * (module(torch.zeros(1, 1).double()) - 7.0).square().sum()  # noqa: E731
    recipe = replace(BRIEF, stages=(Adam(epochs=60, rate=0.02),))
    options = {"recipe": recipe, "residual": residual, "collocation": np.linspace(0, 2, 11)}
    start = torch.zeros(1, 1, dtype=torch.float64)
    _, free = tried(chain, **options)
    _, held = tried(chain, conditions=pinned, **options)
    from_pin = [abs(result.module(start).item() - 7) for result in (held, free)]
    assert from_pin[0] < 0.5 * from_pin[1], "the condition pulls"
    assert 11 in seen


def test_an_equations_size_divides_its_residual():
    _, plain = tried(chain)
    _, sized = tried(chain, sizes=4.0)
    np.testing.assert_allclose(sized.before.residuals * 4, plain.before.residuals, rtol=1e-12)
    assert sized.before.fresh_residual == pytest.approx(plain.before.fresh_residual / 4)


def test_a_partition_of_ones_own_is_used_as_it_is(case, cleaned):
    recipe = replace(SHORT.scaled_to(0.1), accept=False)
    result = case.unlearn(recipe=recipe, partition=cleaned.partition)
    assert result.partition is cleaned.partition
    with pytest.raises(UserError, match="the partition is of 120 readings, but there are 30"):
        tried(chain, partition=cleaned.partition)


def test_good_readings_leave_the_module_alone(case):
    module = case.copy()
    with torch.no_grad():
        values = module(torch.as_tensor(case.points)).numpy()
    values = values + 0.02 * np.random.default_rng(0).standard_normal(values.shape)
    result = unlearn(module, case.points, values, System.residual, SHORT)
    assert result.module is module and result.status.code == "kept"
    assert "nothing to forget" in result.status.reason and result.pruning is None


def test_the_report_is_the_same_as_the_packages_own(case, cleaned, tmp_path):
    cleaned.report(tmp_path / "out", axes=["x"], quantities=["u", "v"])
    table = cleaned.suspects_table(axes=["x"], quantities=["u", "v"])
    problem = unpinn.Problem(
        coordinates={"x": (0, 2)}, fields=["u", "v"], unknowns=[unpinn.Scalar("k", initial=0.5)],
        equations={"decay": lambda u, k: u.x + k * u},
    )  # fmt: skip
    read = unpinn.problem.observe(problem, case.points, dict(zip("uv", case.values.T, strict=True)))
    from unpinn.adapters.torch import to_fit

    fit = replace(to_fit(cleaned.module, problem, read), partition=cleaned.partition)
    own = suspects_table(fit)
    assert list(table) == list(own)
    for name in table:
        np.testing.assert_allclose(table[name], own[name], rtol=1e-6, atol=1e-9, err_msg=name)
    assert (cleaned.suspects == fit.suspects).all()

    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == ["suspects.csv", "unlearned.json", "unlearned.safetensors"]
    told = json.loads((tmp_path / "out/unlearned.json").read_text())
    assert told["unknowns"]["after"] == cleaned.unknowns and told["suspects"] == len(fit.suspects)
    assert told["layers"] == ["first", "second"] and told["pruning"]["after"] == [
        *cleaned.pruning.after
    ]
    arrays, _ = read_arrays(tmp_path / "out/unlearned.safetensors")
    assert (arrays["partition.retained"] == cleaned.partition.retained).all()
    with pytest.raises(UserError, match="exists; choose another directory"):
        cleaned.report(tmp_path / "out")
    with pytest.raises(UserError, match="2 names were given for 1 coordinates"):
        cleaned.report(tmp_path / "other", axes=["x", "y"])


def test_a_map_of_suspects_is_drawn_in_the_plane(tmp_path):
    points = np.random.default_rng(0).uniform(size=(20, 2))
    module = Sequential(Linear(2, 6), Tanh(), Linear(6, 1)).double()
    result = unlearn(
        module, points, points[:, 0], lambda module, x: module(x), BRIEF, untrained=True
    )
    result.report(tmp_path)
    assert (tmp_path / "partition.png").read_bytes().startswith(b"\x89PNG")


def test_without_pytorch_one_sentence_says_what_to_install(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("unpinn.adapters.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match=r"needs PyTorch, which is not installed; install unpinn\["):
        __import__("unpinn.adapters.torch")
