"""A sum in blocks is the sum, and so is its gradient, without holding more than a block."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn.training._blocks import blocked_sum, cut

POINTS = np.random.default_rng(0).normal(size=(24, 3))


def summand(parameters, block):
    hidden = jnp.tanh(block["points"] @ parameters["weight"]) * parameters["scale"]
    residual = hidden.sum(axis=1) * block["sign"]
    parts = jnp.stack([jnp.sum(residual**2), jnp.sum(jnp.cos(residual))])
    return parts @ jnp.array([1.0, 0.5], parts.dtype), parts


def case(kind):
    parameters = {
        "weight": jnp.asarray(np.linspace(-1, 1, 6).reshape(3, 2), kind),
        "scale": jnp.asarray(1.5, kind),
        "name": "not an array",
        "count": jnp.asarray(3),
    }
    sign = jnp.asarray(np.where(np.arange(24) % 3, 1, -1))
    return parameters, {"points": jnp.asarray(POINTS, kind), "sign": sign}


def in_blocks(rows, block):
    return jax.tree.map(lambda array: cut(array, block)[0], rows)


def trained(parameters, weight, scale):
    return {**parameters, "weight": weight, "scale": scale}


@pytest.mark.parametrize("block", [1, 4, 24])
@pytest.mark.parametrize("kind, tolerance", [("float32", 1e-5), ("float64", 1e-13)])
def test_sum_and_gradient_equal_the_whole(block, kind, tolerance):
    with precision.scope(kind):
        parameters, rows = case(kind)
        blocks = in_blocks(rows, block)

        def blocked(weight, scale):
            return blocked_sum(summand, trained(parameters, weight, scale), blocks)

        def whole(weight, scale):
            return summand(trained(parameters, weight, scale), rows)

        start = parameters["weight"], parameters["scale"]
        for function in (lambda f: f, lambda f: jax.value_and_grad(f, (0, 1), has_aux=True)):
            found, expected = (jax.jit(function(f))(*start) for f in (blocked, whole))
            for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                assert a.dtype == kind
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_a_factor_outside_scales_the_gradient():
    parameters, rows = case("float32")
    blocks = in_blocks(rows, 4)

    def total(weight, factor):
        value, _ = blocked_sum(summand, trained(parameters, weight, parameters["scale"]), blocks)
        return factor * value

    weight = parameters["weight"]
    once, thrice = (jax.grad(total)(weight, factor) for factor in (1.0, 3.0))
    np.testing.assert_allclose(thrice, 3 * once, rtol=1e-6)


def test_parts_carry_no_gradient():
    parameters, rows = case("float32")
    blocks = in_blocks(rows, 4)

    def part(weight):
        return blocked_sum(summand, trained(parameters, weight, parameters["scale"]), blocks)[1][0]

    assert not np.any(jax.grad(part)(parameters["weight"]))


def test_many_parameters_at_once():
    parameters, rows = case("float32")
    blocks = in_blocks(rows, 6)

    def gradient(weight):
        return jax.grad(
            lambda w: blocked_sum(summand, trained(parameters, w, parameters["scale"]), blocks)[0]
        )(weight)

    weights = jnp.stack([parameters["weight"], -2 * parameters["weight"]])
    together = jax.vmap(gradient)(weights)
    for number in range(2):
        np.testing.assert_allclose(together[number], gradient(weights[number]), rtol=1e-5)


def test_memory_does_not_grow_with_the_number_of_points():
    def temporary(count: int) -> int:
        points = jnp.ones((count, 64, 3))
        rows = {"points": points, "sign": jnp.ones((count, 64))}
        parameters = {"weight": jnp.ones((3, 200)), "scale": jnp.asarray(1.0)}

        def total(weight):
            return blocked_sum(summand, {**parameters, "weight": weight}, rows)[0]

        lowered = jax.jit(jax.grad(total)).lower(parameters["weight"])
        return lowered.compile().memory_analysis().temp_size_in_bytes

    assert temporary(64) < 1.5 * temporary(4)


@pytest.mark.parametrize("rows, block, expected", [(10, 4, (2, 2)), (8, 4, (2, 0)), (3, 4, (0, 3))])
def test_cut_keeps_every_row_once_and_in_order(rows, block, expected):
    array = jnp.arange(rows * 2).reshape(rows, 2)
    blocks, rest = cut(array, block)
    assert blocks.shape == (expected[0], block, 2) and rest.shape == (expected[1], 2)
    np.testing.assert_array_equal(jnp.concatenate([blocks.reshape(-1, 2), rest]), array)
