"""Masks, hooks, folding and compaction: exact for every architecture."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpinn.network import ARCHITECTURES, Linear, make_plan
from unpinn.problem import Derivative

WIDTH, DEPTH = 4, 2
PLAN = make_plan(frozenset({Derivative("u", (2, 0)), Derivative("u", (1, 1))}), 2, (1.0, 1.0))
POINTS = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (6, 2)), jnp.float32)

every_architecture = pytest.mark.parametrize("kind", ARCHITECTURES)
masks = st.lists(
    st.lists(st.booleans(), min_size=WIDTH, max_size=WIDTH), min_size=DEPTH, max_size=DEPTH
)


@eqx.filter_jit
def channels(network):
    return network.propagate(POINTS, PLAN).stack


def assert_same(one, other, tolerance=1e-5) -> None:
    """Value and derivatives agree to rounding, each within its own size."""
    one, other = np.asarray(channels(one)), np.asarray(channels(other))
    sizes = np.maximum(np.abs(one).max(axis=(1, 2)), 1e-3)
    assert (np.abs(one - other).max(axis=(1, 2)) <= tolerance * sizes).all()


@pytest.fixture(scope="module")
def networks(draw):
    return {kind: draw(kind, width=WIDTH, depth=DEPTH) for kind in ARCHITECTURES}


# -- masks ------------------------------------------------------------------------------------


@every_architecture
def test_a_fresh_network_keeps_every_neuron(networks, kind):
    network = networks[kind]
    assert network.widths == network.alive == (WIDTH,) * DEPTH
    assert_same(network, network.compact(), 0.0)


@every_architecture
@settings(max_examples=10)
@given(mask=masks)
def test_masked_and_compacted_are_equal(networks, kind, mask):
    masked = networks[kind].with_masks([np.array(layer, float) for layer in mask])
    compacted = masked.compact()
    kept = tuple(sum(layer) for layer in mask)
    assert masked.alive == compacted.alive == compacted.widths == kept
    assert masked.widths == (WIDTH,) * DEPTH
    assert_same(masked, compacted)


@every_architecture
@settings(max_examples=6)
@given(first=masks, second=masks)
def test_compacting_twice_is_compacting_once(networks, kind, first, second):
    once = networks[kind].with_masks(np.array(first, float))
    # The second choice is among the neurons that the first has left.
    rest = [np.array(b, float)[a] for a, b in zip(first, second, strict=True)]
    twice = once.compact().with_masks(rest).compact()
    assert_same(networks[kind].with_masks(np.array(first) & np.array(second)), twice)


@every_architecture
def test_compaction_shrinks_the_weights(networks, kind):
    def numbers(network):
        return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_array)))

    halved = networks[kind].with_masks([np.arange(WIDTH) < WIDTH // 2] * DEPTH)
    assert numbers(halved.compact()) < numbers(halved)


def test_encoders_that_no_layer_needs_go_too(networks):
    mask = [np.array([0, 1, 0, 0]), np.array([0, 1, 0, 1])]
    compacted = networks["modified"].with_masks(mask).compact()
    assert [encoder.weight.shape[0] for encoder in compacted.encoders] == [2, 2]
    assert compacted.picks == ((0,), (0, 1))


@every_architecture
def test_without_neurons_a_network_is_still_one(networks, kind):
    emptied = networks[kind].with_masks(np.zeros((DEPTH, WIDTH)))
    assert np.isfinite(channels(emptied)).all()
    assert_same(emptied, emptied.compact())


@every_architecture
def test_masks_leave_the_weights_alone(networks, kind):
    masked = networks[kind].with_masks(np.zeros((DEPTH, WIDTH)))
    assert_same(masked.with_masks(np.ones((DEPTH, WIDTH))), networks[kind], 0.0)


# -- activations and hooks --------------------------------------------------------------------


@every_architecture
def test_activations_are_those_of_every_hidden_layer(networks, kind):
    seen = networks[kind].activations(POINTS)
    assert [values.shape for values in seen] == [(6, WIDTH)] * DEPTH
    assert all(np.std(values) > 0 for values in seen)


def test_the_paper_s_activations_come_after_the_nonlinearity(networks):
    network = networks["mlp"]
    expected = np.asarray(POINTS)
    for layer, found in zip(network.hidden, network.activations(POINTS), strict=True):
        expected = np.tanh(expected @ np.asarray(layer.weight).T + np.asarray(layer.bias))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    expected = expected @ np.asarray(network.output.weight).T + np.asarray(network.output.bias)
    np.testing.assert_allclose(network(POINTS), expected, rtol=1e-5, atol=1e-6)


@every_architecture
def test_removed_neurons_are_silent(networks, kind):
    mask = np.ones((DEPTH, WIDTH))
    mask[0, 1] = mask[1, 3] = 0
    seen = networks[kind].with_masks(mask).activations(POINTS)
    for values, layer in zip(seen, mask, strict=True):
        np.testing.assert_array_equal(np.asarray(values).any(axis=0), layer != 0)


@every_architecture
def test_a_hook_sees_every_layer_once_in_order(networks, kind):
    seen = []

    def look(layer, series):
        seen.append((layer, series.stack.shape))
        return series

    looked = networks[kind].propagate(POINTS, PLAN, look)
    assert seen == [(layer, (PLAN.channels, 6, WIDTH)) for layer in range(DEPTH)]
    np.testing.assert_array_equal(looked.stack, networks[kind].propagate(POINTS, PLAN).stack)


@every_architecture
def test_a_hook_drops_neurons_out(networks, kind):
    kept = jnp.array([1.0, 0.0, 1.0, 0.0])

    def drop(layer, series):
        return series.scale(2 * kept) if layer == 0 else series

    dropped = networks[kind].propagate(POINTS, PLAN, drop).stack
    # The same, said with a mask and twice the weights of the layer that follows.
    linear = networks[kind].following(0)
    doubled = networks[kind].with_following(0, Linear(2 * linear.weight, linear.bias))
    expected = channels(doubled.with_masks([kept, np.ones(WIDTH)]))
    np.testing.assert_allclose(dropped, expected, rtol=1e-4, atol=1e-5)
    assert np.abs(dropped - channels(networks[kind])).max() > 1e-3


@every_architecture
def test_a_hook_may_drop_out_for_each_point(networks, kind):
    share = jax.random.bernoulli(jax.random.key(0), 0.5, (6, WIDTH)).astype(jnp.float32)

    def dropped(points, share):
        def drop(layer, series):
            return series.scale(share)

        return networks[kind].propagate(points, PLAN, drop).stack

    together = dropped(POINTS, share)
    alone = dropped(POINTS[2:3], share[2:3])
    np.testing.assert_allclose(together[:, 2:3], alone, rtol=1e-4, atol=1e-5)


# -- folding ----------------------------------------------------------------------------------


@every_architecture
@settings(max_examples=10)
@given(
    layer=st.integers(0, DEPTH - 1),
    removed=st.lists(st.booleans(), min_size=WIDTH, max_size=WIDTH),
    constant=st.floats(-2, 2, width=32),
)
def test_folding_is_replacing_neurons_by_constants(networks, kind, layer, removed, constant):
    network, removed = networks[kind], np.array(removed)
    constants = np.where(removed, constant * np.arange(1, WIDTH + 1), 0.0)
    keep, add = jnp.asarray(~removed, jnp.float32), jnp.asarray(constants, jnp.float32)

    def replace(number, series):
        return series.scale(keep).shift(add) if number == layer else series

    mask = np.ones((DEPTH, WIDTH))
    mask[layer] = ~removed
    folded = network.fold(layer, constants).with_masks(mask)
    expected = network.propagate(POINTS, PLAN, replace).stack
    np.testing.assert_allclose(channels(folded), expected, rtol=1e-4, atol=2e-5)


def feeding(network, layer: int, neuron: int):
    """A copy in which a neuron is the same at every point, whatever the architecture."""
    silence = lambda linear: linear.at[neuron].set(0.0)  # noqa: E731
    weight = lambda net: net.incoming(layer).weight  # noqa: E731
    still = eqx.tree_at(weight, network, replace_fn=silence)
    if hasattr(network, "encoders"):
        weights = lambda net: [encoder.weight for encoder in net.encoders]  # noqa: E731
        still = eqx.tree_at(weights, still, replace_fn=silence)
        biases = lambda net: [encoder.bias for encoder in net.encoders]  # noqa: E731
        still = eqx.tree_at(biases, still, replace_fn=lambda bias: bias.at[neuron].set(0.7))
    return still


@every_architecture
@pytest.mark.parametrize("layer", range(DEPTH))
def test_a_constant_neuron_folds_without_a_trace(networks, kind, layer):
    still = feeding(networks[kind], layer, 1)
    values = np.asarray(still.activations(POINTS)[layer])
    assert np.ptp(values[:, 1]) == 0 and values[0, 1] != 0
    constants = np.where(np.arange(WIDTH) == 1, values.mean(axis=0), 0.0)
    mask = np.ones((DEPTH, WIDTH))
    mask[layer, 1] = 0
    pruned = still.fold(layer, constants).with_masks(mask)
    assert_same(still, pruned, 2e-6)
    assert_same(still, pruned.compact(), 2e-6)
    # Unfolded, the neuron is missed.
    assert np.abs(channels(still) - channels(still.with_masks(mask)))[0].max() > 1e-4


@every_architecture
def test_folding_changes_only_the_following_bias(networks, kind):
    network = networks[kind]
    folded = network.fold(0, np.ones(WIDTH))
    linear, changed = network.following(0), folded.following(0)
    np.testing.assert_array_equal(changed.weight, linear.weight)
    np.testing.assert_allclose(changed.bias, linear.bias + linear.weight.sum(axis=1), rtol=1e-5)
    assert_same(folded.with_following(0, linear), network, 0.0)
