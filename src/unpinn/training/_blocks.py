"""Sums over many points in blocks, whose gradient is gathered on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

Summand = Callable[[Any, Any], jax.Array]


def blocked_sum(summand: Summand, parameters: Any, blocks: Any) -> tuple[jax.Array, jax.Array]:
    """Sum `summand(parameters, block)` over the leading axis of `blocks`.

    `summand` gives (scalar, vector of parts); both are summed, and only the scalar is
    differentiated. The gradient is accumulated block by block in the forward sweep, so that
    activations are held for one block only and stay in cache, at no extra computation.
    """
    dynamic, static = eqx.partition(parameters, eqx.is_inexact_array)

    def part(dynamic, block):
        return summand(eqx.combine(dynamic, static), block)

    @jax.custom_vjp
    def total(dynamic, blocks):
        def body(carry, block):
            value, parts = part(dynamic, block)
            return (carry[0] + value, carry[1] + parts), None

        return lax.scan(body, _zeros(part, dynamic, blocks), blocks)[0]

    def forward(dynamic, blocks):
        def body(carry, block):
            (value, parts), gradient = jax.value_and_grad(part, has_aux=True)(dynamic, block)
            add = lambda a, b: a + b  # noqa: E731
            return (
                carry[0] + value,
                carry[1] + parts,
                jax.tree_util.tree_map(add, carry[2], gradient),
            ), None

        zeros = jax.tree_util.tree_map(jnp.zeros_like, dynamic)
        value, parts, gradient = lax.scan(body, (*_zeros(part, dynamic, blocks), zeros), blocks)[0]
        return (value, parts), (gradient, blocks)

    def backward(residuals, cotangents):
        gradient, blocks = residuals
        scaled = jax.tree_util.tree_map(lambda g: cotangents[0] * g, gradient)
        return scaled, jax.tree_util.tree_map(_no_gradient, blocks)

    total.defvjp(forward, backward)
    return total(dynamic, blocks)


def cut(array: jax.Array, block: int) -> tuple[jax.Array, jax.Array]:
    """Split (n, ...) into ((blocks, block, ...), rest of fewer than `block` rows)."""
    whole = (array.shape[0] // block) * block
    return array[:whole].reshape(-1, block, *array.shape[1:]), array[whole:]


def _zeros(part, dynamic, blocks):
    first = jax.tree_util.tree_map(lambda array: array[0], blocks)
    shapes = jax.eval_shape(part, dynamic, first)
    return tuple(jnp.zeros(shape.shape, shape.dtype) for shape in shapes)


def _no_gradient(array):
    if jnp.issubdtype(array.dtype, jnp.inexact):
        return jnp.zeros_like(array)
    return jnp.zeros(array.shape, jax.dtypes.float0)
