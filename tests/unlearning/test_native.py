"""This package's own networks under pruning: masked equals compacted, constants leave no trace."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.network import Linear
from unpinn.training import Adam, Protocol, Quiet, train
from unpinn.unlearning import (
    NativePrunable,
    Prunable,
    Schedule,
    compacted,
    prune,
    scores_of,
)


@pytest.fixture(scope="module")
def network(world) -> NativePrunable:
    return NativePrunable(world.noisy.model, world.noisy.observations.points)


@pytest.fixture(scope="module")
def right(world, halves):
    """Readings of the last fifth are suspect."""
    return halves(world.noisy.observations.points[:, 0] < 1.6)


def predict(model, points) -> np.ndarray:
    return np.asarray(model.predict(jnp.asarray(points, jnp.float32)))


def test_what_pruning_sees_is_the_network(network):
    assert isinstance(network, Prunable)
    model = network.model
    seen = model.network.activations(model.inputs(jnp.asarray(network.points, jnp.float32)))
    for found, expected in zip(network.activations(), seen, strict=True):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, atol=1e-6)
    incoming, outgoing = network.norms(1)
    weights = np.asarray(model.network.hidden[1].weight), np.asarray(model.network.output.weight)
    np.testing.assert_allclose(incoming, np.linalg.norm(weights[0], axis=1), rtol=1e-6)
    np.testing.assert_allclose(outgoing, np.linalg.norm(weights[1], axis=0), rtol=1e-6)
    assert [alive.tolist() for alive in network.alive()] == [[True] * 12] * 2


def test_masked_and_compacted_agree_to_rounding(network, right):
    smaller, pruning = prune(network, right, Schedule(0.1, 6))
    small = compacted(smaller.model)
    assert smaller.model.network.widths == (12, 12) and small.network.widths == pruning.after
    assert small.network.alive == smaller.model.network.alive == pruning.after == (6, 6)
    masked, kept = (predict(model, network.points) for model in (smaller.model, small))
    np.testing.assert_allclose(masked, kept, atol=2e-6)
    assert np.abs(masked - predict(network.model, network.points)).max() > 1e-3
    # Nothing but the hidden layers was touched.
    assert float(small.scalars["k"]) == float(network.model.scalars["k"])


def test_the_model_that_was_pruned_is_left_as_it_was(network, right):
    before = predict(network.model, network.points)
    prune(network, right, Schedule(0.3, 2))
    np.testing.assert_array_equal(predict(network.model, network.points), before)
    assert network.model.network.alive == (12, 12)


def test_a_constant_neuron_is_folded_exactly(network, right):
    weights = lambda m: m.network.hidden[0].weight  # noqa: E731
    still = eqx.tree_at(weights, network.model, replace_fn=lambda w: w.at[5].set(0.0))
    smaller, pruning = prune(
        NativePrunable(still, network.points), right, Schedule(0.08, 1, layers=(0,))
    )
    assert pruning.constant == (1, 0) and pruning.steps[0].removed[0].tolist() == [5]
    for model in (smaller.model, compacted(smaller.model)):
        difference = predict(model, network.points) - predict(still, network.points)
        assert np.abs(difference).max() < 2e-6


def test_only_the_following_bias_takes_over(network, right):
    smaller, _ = prune(network, right, Schedule(0.1, 3, layers=(0,)))
    old, new = network.model.network, smaller.model.network
    np.testing.assert_array_equal(old.hidden[1].weight, new.hidden[1].weight)
    assert (np.asarray(old.hidden[1].bias) != np.asarray(new.hidden[1].bias)).any()
    unfolded, _ = prune(network, right, Schedule(0.1, 3, layers=(0,), fold=False, constants=False))
    same: Linear = unfolded.model.network.hidden[1]
    np.testing.assert_array_equal(old.hidden[1].bias, same.bias)


def test_weight_decay_does_not_bring_the_removed_back(world, network, right):
    # Masked and not compacted, so that there is something that could come back.
    smaller, pruning = prune(network, right, Schedule(0.1, 4))
    protocol = Protocol((Adam(epochs=8, rate=1e-2, decay=0.1),), world.noisy.protocol.scaled)
    tuned = train(
        world.problem, world.noisy.observations, protocol, start=smaller.model, watcher=Quiet()
    )
    assert tuned.model.network.alive == pruning.after
    again = NativePrunable(tuned.model, network.points)
    for old, new, values in zip(smaller.alive(), again.alive(), again.activations(), strict=True):
        np.testing.assert_array_equal(old, new)
        assert not values[:, ~new].any() and values[:, new].any(axis=0).all()
    # Training has moved what is left.
    moved = predict(tuned.model, network.points) - predict(smaller.model, network.points)
    assert np.abs(moved).max() > 1e-3


def test_scores_are_misfits_and_residuals_in_units_of_their_equation(world):
    fit = world.noisy
    scores = scores_of(fit, 0.25)
    np.testing.assert_allclose(scores.misfits, fit.misfits())
    size = fit.details["scales"]["decay"]
    assert size != 1.0
    residual = fit.residual(fit.observations.points)
    np.testing.assert_allclose(scores.residuals, residual / size)
    np.testing.assert_allclose(
        scores.score, np.abs(fit.misfits()[:, 0]) + 0.25 * np.abs(residual[:, 0]) / size
    )


def test_a_fit_without_readings_has_no_scores(world):
    with pytest.raises(UserError, match="no readings to score"):
        scores_of(replace(world.noisy, observations=None))
