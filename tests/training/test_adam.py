from __future__ import annotations

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from unpinn import precision
from unpinn._errors import UserError
from unpinn.network import make_model, split
from unpinn.training import Adam, Protocol, make_data_term, make_objective, train


def by_optax(case, protocol: Protocol, seed: int) -> list[np.ndarray]:
    """The same training written out on the tree of weights, an epoch at a time."""
    (stage,) = protocol.stages
    with precision.scope("float32"):
        model = make_model(case.problem, None, protocol.architecture, seed, scaled=False)
    data = make_data_term(case.problem, case.observations)
    objective = make_objective(case.problem, data, seed, protocol.weights)
    with precision.scope("float64"):
        objective = jax.tree.map(jnp.asarray, objective)
        weights, rest = split(precision.cast(model, "float64"))
        direction = optax.scale_by_adam(*stage.betas)
        state = direction.init(weights)

        @jax.jit
        def gradient_of(weights):
            return jax.grad(lambda w: objective(eqx.combine(w, rest, is_leaf=_none))[0])(weights)

        for epoch in range(stage.epochs):
            step, state = direction.update(gradient_of(weights), state)
            rate = stage.rate_at(epoch)
            weights = jax.tree.map(
                lambda w, s, rate=rate: w - rate * (s + stage.decay * w), weights, step
            )
        return [np.asarray(leaf) for leaf in jax.tree.leaves(weights)]


def _none(node) -> bool:
    return node is None


@pytest.mark.parametrize(
    "stage",
    [
        Adam(epochs=4, rate=1e-2, precision="float64"),
        Adam(epochs=4, rate=1e-2, schedule="cosine", precision="float64"),
        Adam(epochs=4, rate=1e-2, betas=(0.8, 0.99), decay=0.1, precision="float64"),
    ],
    ids=["constant", "cosine", "decay"],
)
def test_an_epoch_is_a_step_of_optax_on_the_tree_of_weights(case, tiny, stage):
    protocol = tiny(stage, scaled=False, weights={"data": 3.0})
    fit = train(*case, protocol, seed=5)
    expected = by_optax(case, protocol, seed=5)
    found = jax.tree.leaves(split(fit.model)[0])
    assert len(found) == len(expected)
    for leaf, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(leaf, reference, rtol=1e-6, atol=1e-9)


def test_the_loss_falls_and_every_term_has_its_name(fit):
    assert fit.history.names == ("total", "data", "transport", "start", "c")
    assert len(fit.history) == 40
    total = fit.history["total"]
    assert total[-1] < 0.5 * total[0]
    parts = fit.history["data"] + fit.history["transport"] + fit.history["start"]
    np.testing.assert_allclose(total, parts, rtol=1e-5)
    assert fit.history["c"][0] == pytest.approx(1.0)
    assert fit.status.code == "finished"
    assert fit.history.stages == (("adam", 0),)


def test_a_cosine_ends_at_a_hundredth_of_the_rate():
    stage = Adam(epochs=100, rate=0.5, schedule="cosine")
    rates = [stage.rate_at(epoch) for epoch in range(101)]
    assert rates[0] == pytest.approx(0.5)
    assert rates[50] == pytest.approx(0.5 * 0.505)
    assert rates[-1] == pytest.approx(0.005)
    assert all(later <= earlier for earlier, later in pairwise(rates))


def test_on_the_data_alone_the_equation_is_not_computed_and_its_unknown_stays(case, tiny):
    protocol = tiny(Adam(epochs=30, rate=1e-2, groups=("data",)), Adam(epochs=2))
    history = train(*case, protocol, seed=3).history
    assert history.stages == (("adam", 0), ("adam", 30))
    assert np.isnan(history["transport"][:30]).all() and np.isnan(history["start"][:30]).all()
    assert np.isfinite(history["transport"][30:]).all()
    assert np.all(history["c"][:31] == 1.0)
    assert history["data"][29] < 0.6 * history["data"][0]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({}, {"data": 1.0, "transport": 1.0, "start": 1.0}),
        ({"data": 2.0}, {"data": 2.0, "transport": 1.0, "start": 1.0}),
        ({"transport": 0.1}, {"data": 1.0, "transport": 0.1, "start": 1.0}),
        ({"equations": 0.2, "initial": 4.0}, {"data": 1.0, "transport": 0.2, "start": 4.0}),
        ({"equations": 9.0, "transport": 0.0}, {"data": 1.0, "transport": 0.0, "start": 1.0}),
        ({"boundary": 7.0, "start": 0.5}, {"data": 1.0, "transport": 1.0, "start": 0.5}),
    ],
)
def test_weights_go_by_name_before_group(case, weights, expected):
    data = make_data_term(case.problem, case.observations)
    objective = make_objective(case.problem, data, 0, weights)
    assert dict(zip(objective.names, objective.weights.tolist(), strict=True)) == expected


def test_a_stage_can_change_weights(case, tiny):
    protocol = tiny(
        Adam(epochs=1, weights={"start": 5.0}), weights={"start": 2.0, "data": 3.0}, scaled=False
    )
    assert train(*case, protocol).details["weights"] == {"data": 3, "transport": 1, "start": 5}


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"transprot": 1.0}, "there is no term 'transprot'"),
        ({"data": -1.0}, "weight of 'data' must be a finite number"),
        ({"data": float("nan")}, "weight of 'data' must be a finite number"),
    ],
)
def test_weights_that_make_no_sense_are_refused(case, weights, words):
    with pytest.raises(UserError, match=words):
        make_objective(case.problem, make_data_term(*case), 0, weights)


def test_readings_weigh_as_much_as_they_are_told(case, tiny):
    weights = np.zeros(len(case.observations))
    weights[:7] = 1.0
    some = train(*case, tiny(Adam(epochs=1)), weights=weights).history["data"][0]
    only = train(
        case.problem, case.observations.take(slice(0, 7)), tiny(Adam(epochs=1), scaled=False)
    )
    plain = train(*case, tiny(Adam(epochs=1), scaled=False), weights=weights)
    assert plain.history["data"][0] == pytest.approx(only.history["data"][0], rel=1e-5)
    assert some > 0


def test_without_readings_the_equations_alone_are_solved(case, tiny):
    fit = train(case.problem, protocol=tiny(Adam(epochs=30, rate=1e-2)), seed=1)
    assert fit.history.names == ("total", "transport", "start", "c")
    assert fit.history["total"][-1] < fit.history["total"][0]
    with pytest.raises(UserError, match="this fit has no readings"):
        fit.misfits()
