"""Unlearning a DeepXDE model: from the model itself, and with everything of its owner's kept."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")
dde = pytest.importorskip("deepxde", reason="needs the extra unpinn[deepxde]")

from unpinn import UserError  # noqa: E402
from unpinn.adapters.deepxde import unlearn  # noqa: E402
from unpinn.adapters.deepxde._readings import gather, weighted  # noqa: E402
from unpinn.adapters.torch import find_layers  # noqa: E402
from unpinn.evaluation import detection  # noqa: E402
from unpinn.unlearning import ByShare, Schedule, default_recipe  # noqa: E402

from .conftest import RATE, deepxde_model, exact  # noqa: E402

# No further fine-tunings, which have tests of their own.
ONCE = replace(default_recipe().once(), stiffening=None)
TWICE = replace(ONCE, rounds=2)
BRIEF = replace(ONCE, rule=ByShare(0.5), schedule=Schedule(fraction=0.2, steps=2), accept=False)
GRID = np.linspace(0, 2, 50)[:, None]


class Counter(dde.callbacks.Callback):
    """Counts what it is called for."""

    def __init__(self):
        super().__init__()
        self.begun, self.epochs = 0, 0

    def on_train_begin(self):
        self.begun += 1

    def on_epoch_end(self):
        self.epochs += 1


def start(geometry):
    """u(0) = 1."""
    left = lambda x, on_boundary: on_boundary and bool(np.isclose(x[0], 0))  # noqa: E731
    return dde.icbc.DirichletBC(geometry, lambda x: np.ones((len(x), 1)), left, component=0)


def weights_of(net):
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def same_weights(net, were):
    return all(torch.equal(tensor, were[name]) for name, tensor in net.state_dict().items())


def trained_parameters(model):
    return {id(p) for group in model.opt.param_groups for p in group["params"]}


def test_a_model_is_cleaned_and_trains_on_with_all_that_was_its_owners(case, double, tmp_path):
    bc = start(double.geometry.Interval(0, 2))
    model, k = deepxde_model(
        case, bcs=[bc], num_boundary=2, compile_with={"decay": ("step", 100, 0.9)}
    )
    net, were, optimiser = model.net, weights_of(model.net), model.opt
    counter = Counter()
    written = double.callbacks.VariableValue(k, period=50, filename=str(tmp_path / "k.dat"))
    result = unlearn(
        model, TWICE, unknowns={"k": k}, iterations=150, callbacks=[counter, written]
    )  # fmt: skip

    assert result.status.code == "finished", result.status
    assert detection(result.partition.score, case.is_bad).auc > 0.9
    assert abs(result.unknowns["k"] - RATE) < 0.5 * abs(result.before.unknowns["k"] - RATE)
    assert result.unknowns["k"] == float(k.detach())
    assert relative(model) < 0.5 * relative_of(case)
    # The network is a smaller one of the same class; the old one was left alone.
    assert result.module is model.net is not net and type(model.net) is type(net)
    assert same_weights(net, were)
    assert tuple(lin.out_features for lin in model.net.linears[:-1]) == result.pruning.after
    assert result.layers == ("linears.0", "linears.1") and max(result.pruning.after) < 14
    # Optimiser, its schedule, conditions and callbacks are the owner's.
    assert [attempt["accepted"] for attempt in result.tried] == [True, True]
    assert counter.begun == sum(attempt["rounds"] for attempt in result.tried)
    assert counter.epochs == 150 * counter.begun
    # Fine-tuning alone came first; what the owner's optimiser did then is undone.
    rounds = result.tried[-1]["rounds"]
    assert rounds in (1, 2)
    assert model.opt is optimiser
    assert trained_parameters(model) == {id(p) for p in (*model.net.parameters(), k)}
    assert optimiser.param_groups[0]["lr"] == pytest.approx(0.005 * 0.9 ** (150 * rounds // 100))
    assert model.data.bcs[0] is bc
    assert [type(other) for other in model.data.bcs[1:]] == [double.icbc.PointSetBC] * 2
    written.file.close()  # it never does so itself
    assert len((tmp_path / "k.dat").read_text().splitlines()) >= 3

    small = weights_of(model.net)
    resampler = double.callbacks.PDEPointResampler(period=10)
    history, state = model.train(
        iterations=30, callbacks=[counter, resampler], display_every=30, verbose=0
    )
    assert counter.epochs == 150 * (counter.begun - 1) + 30
    assert np.isfinite(history.loss_train[-1]).all() and state.step == 150 * rounds + 30
    assert not same_weights(model.net, small)
    assert abs(float(k.detach()) - RATE) < 0.5 * abs(result.before.unknowns["k"] - RATE)


def relative(model):
    return float(np.linalg.norm(model.predict(GRID) - exact(GRID)))


def relative_of(case):
    given = case.module(torch.as_tensor(GRID)).detach().numpy()
    return float(np.linalg.norm(given - exact(GRID)))


def test_lbfgs_stops_when_told_and_keeps_its_settings(case, double):
    model, k = deepxde_model(case, compile_with={"optimizer": "L-BFGS", "lr": None})
    own = dict(double.optimizers.LBFGS_options)
    step = model.opt.param_groups[0]["max_iter"]
    result = unlearn(model, replace(TWICE, accept=False), unknowns={"k": k}, iterations=25)
    assert 0 < model.train_state.step <= 50
    assert double.optimizers.LBFGS_options == own
    assert model.opt.param_groups[0]["max_iter"] == step
    assert trained_parameters(model) == {id(p) for p in (*model.net.parameters(), k)}
    assert abs(result.unknowns["k"] - RATE) < abs(result.before.unknowns["k"] - RATE)


def test_fine_tuning_of_ones_own_may_compile_anew(case, double):
    model, k = deepxde_model(case)

    def train(given):
        assert given is model
        given.compile("sgd", lr=1e-4, external_trainable_variables=[k], verbose=0)
        given.train(iterations=2, verbose=0)

    result = unlearn(model, BRIEF, unknowns={"k": k}, train=train)
    assert isinstance(model.opt, torch.optim.SGD) and model.train_state.step == 2
    assert trained_parameters(model) == {id(p) for p in (*model.net.parameters(), k)}
    assert result.module is model.net


@pytest.mark.parametrize("end", ["worse", "raised"])
def test_where_fine_tuning_does_harm_the_model_is_as_it_was(case, double, end):
    model, k = deepxde_model(case)
    model.train(iterations=3, verbose=0)
    given = {**vars(model), "bcs": list(model.data.bcs), "step": model.train_state.step}
    best, shown = model.train_state.best_loss_train, len(model.losshistory.steps)
    were, value, moments = weights_of(model.net), k.detach().clone(), model.opt.state_dict()

    def harm(same):
        same.compile("sgd", lr=1e-4, external_trainable_variables=[k], verbose=0)
        same.train(iterations=2, verbose=0)
        with torch.no_grad():
            k.fill_(9.0)
            same.net.linears[-1].weight.fill_(3.0)
        if end == "raised":
            raise RuntimeError("the owner's mistake")

    if end == "raised":
        with pytest.raises(RuntimeError, match="the owner's mistake"):
            unlearn(model, ONCE, unknowns={"k": k}, train=harm)
    else:
        result = unlearn(model, ONCE, unknowns={"k": k}, train=harm)
        assert result.status.code == "kept" and result.module is given["net"]
    assert model.net is given["net"] and same_weights(model.net, were)
    assert model.data.bcs == given["bcs"] and model.opt is given["opt"]
    assert torch.equal(k, value)
    assert model.train_state is given["train_state"] and model.train_state.step == given["step"]
    assert model.train_state.best_loss_train == best and len(model.losshistory.steps) == shown
    assert trained_parameters(model) == {id(p) for p in (*model.net.parameters(), k)}
    for name, entry in moments["state"].items():
        assert torch.equal(model.opt.state_dict()["state"][name]["exp_avg"], entry["exp_avg"])
    model.train(iterations=2, verbose=0)
    assert model.train_state.step == given["step"] + 2


def test_unknowns_are_found_and_counted_where_they_are_not_named(case, double):
    model, k = deepxde_model(case)
    result = unlearn(model, BRIEF, iterations=2, layers=["linears.1"])
    assert result.unknowns == {"variable 1": float(k.detach())}
    assert result.layers == ("linears.1",) and model.net.linears[0].out_features == 14


def squares(bc, outputs):
    return bc.error(None, None, outputs, 0, len(outputs)) ** 2


def test_a_set_of_observations_weighs_its_readings():
    """The mean of the squares becomes the weighted mean; the owner's set stays as it is."""
    random = np.random.default_rng(0)
    places, values = random.uniform(size=(30, 2)), random.standard_normal((30, 2))
    weight = random.uniform(size=30).astype(np.float32)
    outputs = torch.as_tensor(random.standard_normal((30, 3)), dtype=torch.float32)
    for bc in (
        dde.icbc.PointSetBC(places, values[:, :1], component=1),
        dde.icbc.PointSetBC(places, values, component=[0, 2]),
        dde.icbc.PointSetOperatorBC(places, values[:, :1], lambda x, y, _: y[:, :1] * y[:, 1:2]),
    ):
        readings = gather([bc])
        plain = squares(bc, outputs)
        heavy = squares(weighted(bc, weight, readings.mean_weight(weight)), outputs)
        expected = np.average(plain.mean(dim=1), weights=weight)
        assert float(heavy.mean()) == pytest.approx(expected, rel=1e-5)
        assert torch.equal(squares(bc, outputs), plain)


def test_a_set_of_bad_readings_alone_loses_its_say():
    good, bad = (dde.icbc.PointSetBC(np.full((n, 1), n), np.ones((n, 1))) for n in (10, 20))
    readings = gather([good, bad])
    weight = np.where(np.arange(30) < 10, 1.0, 0.01)
    mean = readings.mean_weight(weight)
    outputs = torch.zeros(10, 1), torch.zeros(20, 1)
    parts = [
        float(squares(weighted(part.bc, weight[part.rows], mean), out).mean())
        for part, out in zip(readings.sets, outputs, strict=True)
    ]
    assert parts[1] == pytest.approx(0.01 * parts[0], rel=1e-5)


def test_readings_in_batches_keep_their_own_weights():
    places, values = np.arange(12.0)[:, None], np.zeros((12, 1))
    bc = dde.icbc.PointSetBC(places, values, batch_size=5)
    weight = np.arange(12.0)
    part = weighted(bc, weight, 1.0)
    chosen = part.collocation_points(None)
    found = squares(part, torch.ones(5, 1))
    np.testing.assert_allclose(found[:, 0], chosen[:, 0], rtol=1e-6)


def test_sensors_at_other_places_become_rows_and_quantities_columns():
    here, there = np.array([[0.0], [1.0]]), np.array([[2.0]])
    operator = lambda x, y, _: dde.grad.jacobian(y, x, i=0, j=0)  # noqa: E731
    sets = [
        dde.icbc.PointSetBC(here, np.array([[1.0], [2.0]]), component=1),
        dde.icbc.PointSetBC(there, np.array([[3.0]]), component=1),
        dde.icbc.PointSetOperatorBC(here, np.array([[4.0], [5.0]]), operator),
    ]
    readings = gather(sets)
    assert readings.points.tolist() == [[0], [1], [2]]
    expected = [[1, 4], [2, 5], [3, np.nan]]
    np.testing.assert_array_equal(readings.values, expected)
    inputs = torch.as_tensor(readings.points, dtype=torch.float32).requires_grad_(True)
    dde.grad.clear()
    misfits = readings.misfits(inputs, torch.cat([inputs**2, 10 * inputs], dim=1))
    # Ten times the place, and the slope of its square.
    np.testing.assert_allclose(misfits, [[-1, -4], [8, -3], [17, np.nan]], atol=1e-5)
    assert readings.mean_weight(np.array([1.0, 0.0, 0.5])) == pytest.approx(2.5 / 5)


def test_parallel_networks_have_hidden_layers_too():
    torch.manual_seed(0)
    net = dde.nn.PFNN([1, [6, 7], [6, 7], 2], "tanh", "Glorot uniform")
    net.apply_output_transform(lambda x, y: y * x)
    points = torch.linspace(0, 1, 20)[:, None]
    layers = find_layers(net, points, lambda module, x: module(x))
    assert sorted(layer.width for layer in layers) == [6, 6, 7, 7]
    assert not any(layer.coupled for layer in layers)


def test_without_deepxde_one_sentence_says_what_to_install(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("unpinn.adapters.deepxde")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "deepxde", None)
    with pytest.raises(UserError, match=r"needs DeepXDE, which is not installed; install unpinn\["):
        __import__("unpinn.adapters.deepxde")
