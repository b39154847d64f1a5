"""What training may touch: everything but what is fixed."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn.network import ARCHITECTURES, Architecture, Fixed, make_model, split, trainable
from unpinn.problem import Problem, Scalar

every_architecture = pytest.mark.parametrize("kind", ARCHITECTURES)


def test_only_floating_point_arrays_outside_fixed_are_trainable():
    tree = {
        "weight": jnp.ones(2),
        "mask": Fixed(jnp.ones(2)),
        "count": jnp.arange(2),
        "name": "tanh",
        "layers": (jnp.zeros(1), Fixed(np.zeros(1))),
    }
    assert trainable(tree) == {
        "weight": True,
        "mask": False,
        "count": False,
        "name": False,
        "layers": (True, False),
    }


@every_architecture
def test_parts_combine_to_the_whole(draw, kind):
    network = draw(kind)
    trained, rest = split(network)
    assert eqx.tree_equal(eqx.combine(trained, rest), network)
    assert all(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(trained))


@every_architecture
def test_masks_and_frequencies_are_not_trained(draw, kind):
    network = draw(kind)
    trained, rest = split(network)
    fixed = [leaf.size for leaf in jax.tree.leaves(rest) if eqx.is_array(leaf)]
    expected = [7] * 3 + ([2 * 5] if kind == "fourier" else [])
    assert sorted(fixed) == sorted(expected)
    assert not any(np.isin(np.shape(leaf), 0).any() for leaf in jax.tree.leaves(trained))


@every_architecture
def test_gradients_reach_every_trained_array_and_no_other(draw, kind):
    network = draw(kind)
    trained, rest = split(network)
    points = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (4, 2)), jnp.float32)

    def loss(trained):
        return jnp.sum(eqx.combine(trained, rest)(points) ** 2)

    gradients = jax.jit(jax.grad(loss))(trained)
    assert jax.tree.structure(gradients) == jax.tree.structure(trained)
    assert all(np.abs(gradient).max() > 0 for gradient in jax.tree.leaves(gradients))


def test_unknown_numbers_are_trained_and_units_are_not():
    problem = Problem(
        coordinates={"x": (0, 1)},
        fields=["u"],
        unknowns=[Scalar("k", 2.0)],
        equations={"e": lambda u, k: k * u.x},
    )
    model = make_model(problem, None, Architecture(width=3, depth=1), 0, extras={"log noise": -1})
    trained, rest = split(model)
    assert set(trained.scalars) == {"k"}
    assert trained.extras["log noise"].item() == -1.0
    assert not [leaf for leaf in jax.tree.leaves(rest) if eqx.is_array(leaf) and leaf.size != 3]


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_casting_takes_what_is_fixed_along(draw, kind):
    with precision.scope("float64"):
        network = precision.cast(draw("fourier"), kind)
        assert network.frequencies.array.dtype == kind
        assert {mask.array.dtype.name for mask in network.masks} == {kind}
        assert network(jnp.ones((1, 2), kind)).dtype == kind
