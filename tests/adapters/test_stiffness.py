"""More weight for the equations, and going back to a moment, in PyTorch and in DeepXDE."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")

from torch.nn import Parameter  # noqa: E402

from unpinn.adapters.torch import _subject as torch_subject  # noqa: E402
from unpinn.adapters.torch._subject import Parts, TorchSubject  # noqa: E402
from unpinn.adapters.torch._tuning import physics_weight  # noqa: E402
from unpinn.training import Adam, Lbfgs, NoiseEstimate, Partition, Status  # noqa: E402
from unpinn.unlearning import ByMixture, Recipe, Schedule, default_recipe  # noqa: E402

from .conftest import RATE, System, deepxde_model  # noqa: E402

RECIPE = Recipe(
    "stiff", ByMixture(), None, (Adam(epochs=4, rate=0.01),), (Adam(epochs=2),), tolerance=0.05,
    stiffening=5.0, accept=False,
)  # fmt: skip


def noisy(count: int, low: float, factors: tuple[float, ...] = ()) -> Partition:
    """Every reading counts; good ones have the noise `low`."""
    noise = NoiseEstimate(low, 10 * low, 0.5, 2, 1.0, factors)
    zeros, ones = np.zeros(count), np.ones(count)
    return Partition(zeros, zeros, zeros, ones > 0, ones, 1.0, "all", noise=noise)


@pytest.mark.parametrize(
    ("low", "factors", "expected"),
    [
        (0.01, (), 0.04),
        (10.0, (), 1.0),
        (1e-6, (), 1e-4),
        # The same noise, told in terms of a first quantity of which all are twice as noisy.
        (0.005, (2.0, 2.0), 0.04),
    ],
)
def test_the_equations_weight_follows_the_noise_within_bounds(low, factors, expected):
    for stiffness in (1.0, 5.0):
        found = physics_weight(noisy(3, low, factors), RECIPE, stiffness)
        assert found == {"equations": pytest.approx(stiffness * expected)}
    assert physics_weight(noisy(3, low), replace(RECIPE, tolerance=None), 5.0) == {}


# -- PyTorch --------------------------------------------------------------------------------


def torch_side(case, k=None, train=None):
    """A subject whose unknown is outside of the module where one is passed."""
    module = case.copy()
    k = module.k if k is None else k
    collocation = torch.as_tensor(case.points)
    parts = Parts(
        lambda m, x: [part + 0 * k for part in System.residual(m, x)], lambda m, x: m(x), (0, 1),
        {"k": k}, None, collocation, (1.0,), None, train,
    )  # fmt: skip
    return module, TorchSubject(module, case.points, case.values, parts, RECIPE)


def test_the_factor_reaches_the_loss_and_further_steps_are_the_later_ones(case, monkeypatch):
    seen = []

    def tuned(module, loss, stages, weights, parameters):
        seen.append((stages, weights["equations"]))
        return Status("finished", "")

    monkeypatch.setattr(torch_subject, "tune", tuned)
    _, subject = torch_side(case)
    partition = noisy(len(case.points), 0.01)
    subject.tune(partition, RECIPE, False, 1.0)
    subject.tune(partition, RECIPE, True, 25.0)
    assert [stages for stages, _ in seen] == [RECIPE.stages, RECIPE.later]
    assert [weight for _, weight in seen] == pytest.approx([0.04, 1.0])


def numbers(module):
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def test_a_moment_of_a_module_can_be_brought_back_again_and_again(case):
    k = Parameter(torch.tensor(0.5, dtype=torch.float64))
    given, subject = torch_side(case, k)
    were = numbers(given)
    partition = noisy(len(case.points), 0.01)
    moments = []
    for step in range(2):
        subject.tune(partition, RECIPE, step > 0, 1.0)
        with torch.no_grad():
            k += 1
        moments.append((subject.keep(), numbers(subject.module()).clone(), float(k.detach())))
    assert not torch.equal(moments[0][1], moments[1][1])
    for kept, expected, value in (moments[0], moments[1], moments[0], moments[0]):
        subject.bring_back(kept)
        assert torch.equal(numbers(subject.module()), expected) and float(k.detach()) == value
        # What is done after that does not reach what was kept.
        subject.tune(partition, RECIPE, True, 1.0)
        assert not torch.equal(numbers(subject.module()), expected)
    subject.restore()
    assert subject.module() is given and torch.equal(numbers(given), were)
    assert float(k.detach()) == 0.5


@pytest.mark.parametrize("wants", [True, False])
def test_an_owners_training_is_asked_again_and_gets_the_factor_if_it_wants(case, wants):
    seen = []

    def heedless(module, weight):
        seen.append(1.0)

    def heeding(module, weight, stiffness):
        seen.append(stiffness)

    result = case.unlearn(recipe=RECIPE, train=heeding if wants else heedless)
    # Neither changes anything, so the likelihood does not rise.
    expected = [1.0, 1.0, *5.0 ** np.arange(1, 10)] if wants else [1.0, 1.0]
    assert seen == pytest.approx(expected)
    assert result.tried[0]["rounds"] == len(expected)


def test_the_default_fine_tuning_lowers_the_residual_step_by_step(case):
    """Once the rounds are done, the equations are made to hold firmer."""
    recipe = replace(RECIPE, stages=(Lbfgs(iterations=60),), later=(Lbfgs(iterations=20),))
    loose = case.unlearn(recipe=replace(recipe, stiffening=None))
    stiff = case.unlearn(recipe=recipe)
    assert stiff.tried[0]["stiffened"] > 0 == loose.tried[0]["stiffened"]
    assert stiff.after.fresh_residual < 0.5 * loose.after.fresh_residual
    assert abs(stiff.unknowns["k"] - RATE) < 0.01


# -- DeepXDE --------------------------------------------------------------------------------


def dde_side(case, recipe=RECIPE, train=None, **options):
    from unpinn.adapters.deepxde._readings import find_observations, gather
    from unpinn.adapters.deepxde._subject import DeepXDESubject, Wishes

    model, k = deepxde_model(case, compile_with=options)
    readings = gather(find_observations(model.data))
    wishes = Wishes({"k": k}, None, None, (1.0,), None, train, 0)
    subject = DeepXDESubject(model, readings, wishes, recipe)
    subject.look()
    return model, k, subject


@pytest.mark.parametrize("own", [None, [0.5, 2.0, 1.0, 3.0]])
def test_the_factor_multiplies_the_owners_loss_weights_while_it_trains(case, double, own):
    seen = []

    class Look(double.callbacks.Callback):
        def on_epoch_end(self):
            seen.append(self.model.loss_weights)

    model, _, subject = dde_side(case, loss_weights=own)
    subject.wishes = replace(subject.wishes, callbacks=[Look()])
    partition = noisy(len(case.points), 0.01)
    subject.tune(partition, RECIPE, False, 1.0)
    subject.tune(partition, RECIPE, True, 5.0)
    # As long as the recipe's stages, and its later ones; both equations come first.
    stiff = [5.0, 5.0, 1.0, 1.0] if own is None else [2.5, 10.0, 1.0, 3.0]
    assert seen == [own] * 4 + [stiff] * 2
    assert model.loss_weights == own
    last = model.losshistory.loss_train[-1]
    losses = model.outputs_losses_train(model.train_state.X_train, model.train_state.y_train, None)
    plain = losses[1].detach().numpy()
    np.testing.assert_allclose(np.asarray(last)[:2], 5 * plain[:2], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(last)[2:], plain[2:], rtol=1e-6)


@pytest.mark.parametrize("optimizer", ["adam", "L-BFGS"])
def test_a_moment_of_a_model_can_be_brought_back_again_and_again(case, double, optimizer):
    rate = {"lr": 0.005} if optimizer == "adam" else {"lr": None}
    model, k, subject = dde_side(case, optimizer=optimizer, **rate)
    partition = noisy(len(case.points), 0.01)

    def state():
        return numbers(model.net).clone(), float(k.detach()), model.train_state.step

    given, net = state(), model.net
    subject.tune(partition, RECIPE, False, 1.0)
    kept, then = subject.keep(), state()
    subject.tune(partition, RECIPE, True, 1.0)
    after = state()
    assert not torch.equal(after[0], then[0]) and after[2] > then[2]
    for _ in range(2):
        subject.bring_back(kept)
        assert torch.equal(state()[0], then[0]) and state()[1:] == then[1:]
        # Trained again it ends where it ended, so its optimiser was brought back too.
        subject.tune(partition, RECIPE, True, 1.0)
        assert torch.equal(state()[0], after[0]) and state()[1:] == after[1:]
    subject.restore()
    assert model.net is net and torch.equal(state()[0], given[0]) and state()[1:] == given[1:]


def test_a_smaller_network_and_another_compilation_are_undone(case, double):
    from unpinn.unlearning import prune

    def again(model):
        model.compile("sgd", lr=1e-3, external_trainable_variables=[k], verbose=0)
        model.train(iterations=2, verbose=0)

    recipe = replace(RECIPE, schedule=Schedule(fraction=0.2, steps=2))
    model, k, subject = dde_side(case, recipe, train=again)
    net, optimiser, were = model.net, model.opt, numbers(model.net).clone()
    whole, partition = subject.keep(), noisy(len(case.points), 0.01)
    suspect = np.arange(len(case.points)) % 2 == 0
    halves = replace(partition, retained=~suspect)
    smaller, _ = prune(subject.prunable(~suspect), halves, recipe.schedule, 0)
    subject.adopt(smaller)
    subject.tune(partition, recipe, False, 1.0)
    pruned, small, weights = subject.keep(), model.net, numbers(model.net).clone()
    subject.bring_back(whole)
    assert model.net is net and model.opt is optimiser
    assert torch.equal(numbers(net), were)
    subject.bring_back(pruned)
    assert model.net is small and isinstance(model.opt, torch.optim.SGD)
    assert torch.equal(numbers(model.net), weights)
    mine = {id(p) for group in model.opt.param_groups for p in group["params"]}
    assert mine == {id(p) for p in (*small.parameters(), k)}


@pytest.mark.parametrize("wants", [True, False])
def test_an_owners_training_of_a_model_gets_the_factor_if_it_wants(case, double, wants):
    from unpinn.adapters.deepxde import unlearn

    seen = []

    def heedless(model):
        seen.append(1.0)

    def heeding(model, stiffness):
        seen.append(stiffness)

    model, k = deepxde_model(case)
    unlearn(model, RECIPE, unknowns={"k": k}, train=heeding if wants else heedless)
    assert seen == pytest.approx([1.0, 1.0, *5.0 ** np.arange(1, 10)] if wants else [1.0, 1.0])


def test_fine_tuning_alone_is_taken_where_pruning_does_harm(case, double):
    """The network stays, with other weights; the model goes on from there."""
    from unpinn.adapters.deepxde import unlearn

    def harms_the_small(model):
        model.train(iterations=150, verbose=0)
        if model.net.linears[0].out_features < 14:
            with torch.no_grad():
                model.net.linears[-1].weight.fill_(3.0)

    model, k = deepxde_model(case)
    net, optimiser, were = model.net, model.opt, numbers(model.net).clone()
    recipe = replace(default_recipe().once(), stiffening=None)
    result = unlearn(model, recipe, unknowns={"k": k}, train=harms_the_small)
    assert [attempt["accepted"] for attempt in result.tried] == [True, False, False]
    assert result.module is model.net is net and not torch.equal(numbers(net), were)
    assert result.pruning is None and "with fewer neurons" in result.status.reason
    assert model.opt is optimiser and model.train_state.step == 150
    found = result.after.misfits + np.asarray(case.values)
    np.testing.assert_allclose(model.predict(case.points), found, atol=1e-10)
    model.train(iterations=2, verbose=0)
    assert model.train_state.step == 152
