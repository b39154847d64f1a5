"""The loss: sizes of equations, weights from gradients, mini-batches, dropout, penalties."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpinn._errors import UserError
from unpinn.network import make_model
from unpinn.problem import Condition, Grid, Problem, observe
from unpinn.training import (
    Absolute,
    Adam,
    Heteroscedastic,
    Huber,
    Mixture,
    Squared,
    StudentT,
    Trimmed,
    make_data_term,
    make_objective,
    measured_scales,
    train,
)
from unpinn.training._balance import balanced_weights
from unpinn.training._dropout import dropout
from unpinn.training._minibatch import batches_an_epoch, take_batch
from unpinn.training._stages import flatten, loss


@pytest.fixture(scope="module")
def model(case, tiny):
    return make_model(case.problem, None, tiny(Adam()).architecture, seed=1, scaled=False)


@pytest.fixture(scope="module")
def objective(case):
    return ready(make_objective(case.problem, make_data_term(*case), 0))


def ready(objective):
    return jax.tree.map(lambda array: jnp.asarray(array, jnp.float32), objective)


# -- sizes ---------------------------------------------------------------------------------


def test_an_equations_size_does_not_cancel(case, objective, model):
    sizes = measured_scales(objective, model)
    points = jnp.asarray(case.problem.collocation_points(0), jnp.float32)
    derivative = jax.jit(jax.vmap(jax.grad(lambda p: model.predict(p[None])[0, 0])))
    along, in_time = np.asarray(derivative(points)).T
    c = 1.0
    assert sizes["transport"] == pytest.approx(
        np.sqrt(np.mean(in_time**2 + (c * along) ** 2)), 1e-4
    )
    values = np.asarray(model.predict(points))[:, 0]
    # The part of u - x that no field moves counts too.
    expected = np.sqrt(np.mean(values**2) + np.mean(np.asarray(points)[:, 0] ** 2))
    assert sizes["start"] == pytest.approx(expected, 1e-4)


@pytest.mark.parametrize("size", ["measured", "reference"])
def test_rescaling_divides_by_the_size(case, tiny, size):
    plain = train(*case, tiny(Adam(epochs=1), scaled=False), seed=2)
    scaled = train(*case, tiny(Adam(epochs=1, rescale=size), scaled=False), seed=2)
    for name in ("transport", "start"):
        assert plain.details["scales"][name] == 1.0
        size = scaled.details["scales"][name]
        assert size != 1.0
        expected = plain.history[name][0] / size**2
        assert scaled.history[name][0] == pytest.approx(expected, rel=1e-4)


# -- weights from gradients ----------------------------------------------------------------


def test_balanced_weights_follow_their_formula(case, objective, model):
    trained = flatten(model)
    norms = []
    for number in range(3):
        one = objective.weighted(jnp.eye(3)[number])
        gradient = jax.jit(jax.grad(lambda x, one=one: loss(x, one, model)[0]))(trained)
        norms.append(float(jnp.sum(gradient**2)))
    counts = [len(case.observations), 49, 9]
    norms, counts = np.array(norms), np.array(counts)
    expected = counts * np.sum(norms / counts) / (norms + 1e-3)
    found = balanced_weights(objective, model)
    assert expected[1] < 1000
    np.testing.assert_allclose(found, np.minimum(expected, 1000), rtol=1e-4)


def test_only_data_and_conditions_are_capped(objective, model):
    # Hardly anything pulls on a hugely scaled residual, and much on a finely scaled one.
    objective = eqx.tree_at(
        lambda o: o.conditions[0].scales, objective, replace_fn=lambda s: 0.1 * s
    )
    faint = eqx.tree_at(lambda o: o.data.scales, objective, replace_fn=lambda s: 1e4 * s)
    data, _, start = balanced_weights(faint, model)
    assert data == 1000 > start
    faint = eqx.tree_at(lambda o: o.equations.scales, objective, replace_fn=lambda s: 1e4 * s)
    assert balanced_weights(faint, model)[1] > 1000


def test_a_stage_balances_once_at_its_start(case, tiny):
    fit = train(*case, tiny(Adam(epochs=3, balance=True), scaled=False), seed=2)
    assert fit.details["weights"]["data"] != 1.0
    weights = [fit.details["weights"][name] for name in ("data", "transport", "start")]
    terms = np.stack([fit.history[n] for n in ("data", "transport", "start")], axis=1)
    np.testing.assert_allclose(fit.history["total"], terms @ weights, rtol=1e-4)


# -- mini-batches --------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 5, 9, 18, 35])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_epoch_of_parts_meets_every_reading_once(case, objective, batch, seed):
    data = objective.data
    # A reading's row number as its value, so that parts can be told apart.
    rows = jnp.arange(len(case.observations), dtype=jnp.float32)[:, None]
    objective = eqx.tree_at(lambda o: o.data.values, objective, rows)
    steps = batches_an_epoch(objective, batch)
    assert steps == -(-len(rows) // batch)
    met = []
    for number in range(steps):
        part = take_batch(objective, batch, jax.random.key(seed), jnp.asarray(number)).data
        assert part.values.shape == (batch, 1)
        met += np.asarray(part.values)[np.asarray(part.weights[:, 0]) > 0, 0].tolist()
    assert sorted(met) == list(range(len(rows)))
    assert data.weights.shape == (36, 1)


def test_parts_of_later_epochs_are_others(case, objective):
    rows = jnp.arange(36, dtype=jnp.float32)[:, None]
    objective = eqx.tree_at(lambda o: o.data.values, objective, rows)
    together = set()
    for epoch in range(12):
        part = take_batch(objective, 6, jax.random.key(epoch), jnp.asarray(0)).data
        together.add(frozenset(np.asarray(part.values)[:, 0].tolist()))
    assert len(together) > 6


def test_the_mean_over_parts_is_the_whole(case, model):
    weights = np.random.default_rng(1).random(36)
    data = make_data_term(*case, weights)
    objective = ready(make_objective(case.problem, data, 0))
    whole = objective.data(model)
    for batch in (5, 12):
        steps = batches_an_epoch(objective, batch)
        parts = [
            take_batch(objective, batch, jax.random.key(3), jnp.asarray(k)).data(model)
            for k in range(steps)
        ]
        assert np.mean(parts) == pytest.approx(float(whole), rel=1e-5)


def test_points_drawn_for_a_step_are_points_of_the_problem(case, objective):
    part = take_batch(objective, 8, jax.random.key(0), jnp.asarray(2))
    assert part.equations.points.shape == (8, 2)
    everywhere = {tuple(p) for p in np.asarray(objective.equations.points).tolist()}
    assert {tuple(p) for p in np.asarray(part.equations.points).tolist()} <= everywhere


def test_training_in_mini_batches_finds_what_the_full_batch_finds(case, tiny):
    whole = train(*case, tiny(Adam(epochs=150, rate=1e-2)), seed=3)
    parts = train(*case, tiny(Adam(epochs=60, rate=1e-2, batch=12)), seed=3)
    assert parts.history["total"][-1] < 2 * whole.history["total"][-1]
    again = train(*case, tiny(Adam(epochs=60, rate=1e-2, batch=12)), seed=3)
    assert np.array_equal(parts.history.rows, again.history.rows)


# -- dropout -------------------------------------------------------------------------------


def test_dropout_silences_a_neuron_in_every_derivative_alike(case, model):
    points = jnp.asarray(case.problem.collocation_points(0), jnp.float32)
    drop = dropout(jax.random.key(0), 0.3)
    seen = {}

    def hook(layer, series):
        after = drop(layer, series)
        seen[layer] = [
            (np.asarray(channel(series)), np.asarray(channel(after)))
            for channel in (lambda s: s.value, lambda s: s.derivative((1, 0)))
        ]
        return after

    model.evaluate_all(case.problem.equation_expressions, points, hook)
    silenced = []
    for (value, thinned), (slope, thinned_slope) in seen.values():
        gone = thinned == 0
        assert 0.15 < gone.mean() < 0.45
        np.testing.assert_allclose(thinned, np.where(gone, 0, value / 0.7), rtol=1e-5)
        np.testing.assert_allclose(thinned_slope, np.where(gone, 0, slope / 0.7), rtol=1e-5)
        silenced.append(gone)
    assert not np.array_equal(*silenced)


def test_dropout_differs_from_epoch_to_epoch_and_repeats_with_the_seed(case, tiny):
    protocol = tiny(Adam(epochs=20, rate=1e-9, dropout=0.3))
    first, second = (train(*case, protocol, seed=3) for _ in range(2))
    assert np.array_equal(first.history.rows, second.history.rows)
    # The weights hardly move, so the loss differs by the masks alone.
    assert np.std(first.history["total"]) > 1e-3
    plain = train(*case, tiny(Adam(epochs=20, rate=1e-9)), seed=3)
    assert np.std(plain.history["total"]) < 1e-5


# -- penalties -----------------------------------------------------------------------------

MISFIT = np.array([[0.1, -2.0], [0.5, 0.0], [-0.3, 4.0]], np.float32)
WEIGHT = np.array([[0.3, 0.1], [0.2, 0.0], [0.2, 0.2]], np.float32)
EXTRAS = {"log_low": -1.0, "gap": 1.5, "logit_high": -0.4, "log_scale": -0.7}


@pytest.fixture(scope="module")
def holder(case, tiny):
    """A model that trains what the likelihoods need."""
    architecture = tiny(Adam()).architecture
    return make_model(case.problem, None, architecture, seed=1, scaled=False, extras=EXTRAS)


def two_kinds() -> float:
    """The mixture's negative log-likelihood: a reading is good or bad as a whole."""
    levels = np.exp(-1.0), np.exp(-1.0 + np.log1p(np.exp(1.5)))
    bad = 1 / (1 + np.exp(0.4))
    total = 0.0
    for misfit, weight in zip(MISFIT, WEIGHT, strict=True):
        there = weight > 0
        densities = [
            np.prod(np.exp(-0.5 * (misfit[there] / s) ** 2) / (s * np.sqrt(2 * np.pi)))
            for s in levels
        ]
        likelihood = (1 - bad) * densities[0] + bad * densities[1]
        total -= weight.sum() / there.sum() * np.log(likelihood)
    return total


SIZE = np.abs(MISFIT)
BY_HAND = {
    "squared": (Squared(), np.sum(WEIGHT * MISFIT**2)),
    "absolute": (Absolute(smooth=1e-3), np.sum(WEIGHT * (np.sqrt(MISFIT**2 + 1e-6) - 1e-3))),
    "huber": (
        Huber(0.4),
        np.sum(WEIGHT * np.where(SIZE <= 0.4, MISFIT**2, 2 * 0.4 * SIZE - 0.16)),
    ),
    "student": (
        StudentT(3.0),
        np.sum(WEIGHT * (2 * np.log1p(MISFIT**2 / (3 * np.exp(-1.4))) - 0.7)),
    ),
    "mixture": (Mixture(), two_kinds()),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_penalty_is_what_its_formula_says(name, holder):
    penalty, expected = BY_HAND[name]
    found = penalty(jnp.asarray(MISFIT), jnp.asarray(WEIGHT), holder)
    assert float(found) == pytest.approx(float(expected), rel=1e-4)


@given(st.integers(1, 40))
def test_trimming_keeps_the_smallest_share(holder, count):
    sizes = np.arange(1.0, 41.0)
    misfit = jnp.asarray(np.random.default_rng(0).permutation(sizes)[:, None], jnp.float32)
    found = Trimmed(count / 40)(misfit, jnp.full((40, 1), 1 / 40), holder)
    assert float(found) == pytest.approx(np.mean(sizes[:count] ** 2), rel=1e-4)


def test_trimming_overlooks_readings_of_no_weight(holder):
    misfit = jnp.asarray([[0.1], [5.0], [0.2], [0.3]])
    weight = jnp.asarray([[0.5], [0.0], [0.25], [0.25]])
    found = Trimmed(1.0)(misfit, weight, holder)
    assert float(found) == pytest.approx(0.5 * 0.01 + 0.25 * 0.04 + 0.25 * 0.09, rel=1e-4)


def test_a_level_that_is_an_output_of_the_network_is_read_off_it(holder):
    level = jnp.asarray([[0.2], [-1.0], [0.5]])
    one = jnp.asarray(MISFIT[:, :1])
    weight = jnp.asarray([[0.5], [0.25], [0.25]])
    found = Heteroscedastic()(one, weight, holder, level)
    expected = np.sum(weight * (0.5 * one**2 * np.exp(-2 * level) + level))
    assert float(found) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Huber(0.0), "huber needs a width above zero"),
        (lambda: StudentT(-1.0), "student needs a freedom above zero"),
        (lambda: Trimmed(0.0), "share in"),
        (lambda: Trimmed(1.5), "share in"),
    ],
)
def test_impossible_penalties_are_refused(make, words):
    with pytest.raises(UserError, match=words):
        make()


def test_a_penalty_with_numbers_of_its_own_trains_them(case, tiny):
    extras = {"log_low": -2.0, "gap": 1.0, "logit_high": 0.0}
    fit = train(*case, tiny(Adam(epochs=20, rate=1e-2)), penalty=Mixture(), extras=extras)
    moved = {name: float(fit.model.extras[name]) for name in extras}
    assert all(abs(moved[name] - extras[name]) > 1e-3 for name in extras)


# -- several components and missing readings -----------------------------------------------


def test_equations_share_their_weight_by_components():
    problem = Problem(
        coordinates={"x": (0, 1)},
        fields=["u", "v"],
        equations={"both": lambda u, v: (u.x, v.x), "one": lambda u: u},
        conditions=[Condition("pinned", lambda u: u, at={"x": 0.0})],
        collocation=Grid(5),
    )
    points = Grid(4).draw(problem.coordinates)
    values = np.array([[1.0, np.nan], [2.0, 0.5], [np.nan, 0.1], [3.0, 0.2]])
    observations = observe(problem, points, values)
    objective = make_objective(problem, make_data_term(problem, observations), 0)
    assert objective.names == ("data", "both", "one", "pinned")
    np.testing.assert_allclose(objective.weights, [1, 2 / 3, 1 / 3, 1])
    # A missing cell counts for nothing, the others for the same.
    np.testing.assert_allclose(objective.data.weights, np.isfinite(values) / 6)
    assert np.isfinite(objective.data.values).all()
