r"""Arithmetic of truncated Taylor series on tuples of channels.

A channel is (width, n), or (width, 1) where it is the same at every point, or None where it is zero
for any weights: a coordinate's own second derivative, say. Neurons come first so that the three
matrix products of a layer (forward, and backward to its input and to its weight) all have a form
for which XLA has a fast kernel on a CPU, and each channel is an array of its own so that nothing
is ever copied to stack or to slice.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from unpinn.network._activations import Activation
from unpinn.network._plan import Plan

# Each a jax.Array, or None.
Channels = tuple[Any, ...]

# Up to so many terms, a matrix product is cheaper written out: it fuses with what is around it.
FEW = 4


def times(*factors):
    """The product, None if any factor is zero (None)."""
    if any(factor is None for factor in factors):
        return None
    first, *others = factors
    for other in others:
        first = first * other
    return first


def plus(*terms):
    """The sum of the terms that are not zero (None), None if all are."""
    first, *others = [term for term in terms if term is not None] or [None]
    for other in others:
        first = first + other
    return first


def product(plan: Plan, a: Channels, b: Channels) -> Channels:
    """The product of two series, coefficient by coefficient (Cauchy)."""
    out: list[Any] = [times(a[0], b[0])]
    for x, y in zip(_directions(plan, a), _directions(plan, b), strict=True):
        out += [_cauchy(x, y, k) for k in range(1, len(x))]
    if plan.laplacian is not None:
        cross = plus(*(times(a[c], b[c], 2.0 * weight) for c, weight in _gradient(plan)))
        out.append(plus(times(a[-1], b[0]), times(a[0], b[-1]), cross))
    return tuple(out)


def _cauchy(x, y, k: int):
    return plus(*(times(x[k - i], y[i]) for i in range(k + 1)))


def _directions(plan: Plan, channels: Channels) -> list[list[Any]]:
    """For each direction the coefficients from the value on."""
    return [
        [channels[0], *channels[plan.channel(number, 1) : plan.channel(number, order + 1)]]
        for number, order in enumerate(plan.orders)
    ]


def _gradient(plan: Plan) -> list[tuple[int, float]]:
    """The channels of first derivatives that the laplacian sums, with their weights."""
    unit = lambda axis: tuple(int(k == axis) for k in range(plan.dimension))  # noqa: E731
    return [
        (plan.channel(plan.directions.index(unit(axis)), 1), weight)
        for axis, weight in enumerate(plan.laplacian or ())
        if weight != 0.0
    ]


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def compose(activation: Activation, plan: Plan, z: Channels) -> Channels:
    r"""The series of $y = f\circ z$.

    With $h = f'\circ z$, comparing coefficients of $\dot y = h \dot z$ gives
    $$ y_k = \sum_{j=1}^k \frac{j}{k}\, z_j h_{k-j}, \qquad
       \Delta y = h_0 \Delta z + \nabla h \cdot \nabla z . $$
    """
    if activation.quadratic is None:
        return _levels(activation, plan, z, 0)
    _, linear, square = activation.quadratic
    value = activation(z[0])
    y: list[Any] = [value]
    slope = _slope(activation.quadratic, value)
    for x in _directions(plan, z):
        found, slopes = [value], [slope]
        for k in range(1, len(x)):
            found.append(_integrate(x, slopes, k))
            own = times(_cauchy(found, found, k), square)
            slopes.append(plus(own, times(found[k], linear) if linear else None))
        y += found[1:]
    if plan.laplacian is not None:
        rate = linear + 2.0 * square * value
        bend = plus(*(times(z[c], y[c], rate, weight) for c, weight in _gradient(plan)))
        y.append(plus(times(slope, z[-1]), bend))
    return tuple(y)


@compose.defjvp
def _compose_jvp(activation: Activation, plan: Plan, primals, tangents):
    # dy = (f' o z) dz is a product of series. Its transpose, which JAX derives from it, is all of
    # the backward pass; where f' is a polynomial in f it needs nothing but the layer's output.
    (z,), (dz,) = primals, tangents
    y = compose(activation, plan, z)
    if activation.quadratic is None:
        slopes = _levels(activation, plan, z, 1)
    else:
        constant, linear, square = activation.quadratic
        squares = product(plan, y, y)
        slopes = tuple(
            plus(times(own, square), times(first, linear) if linear else None)
            for own, first in zip(squares, y, strict=True)
        )
        slopes = (slopes[0] + constant, *slopes[1:])
    return y, product(plan, slopes, dz)


def _slope(quadratic: tuple[float, float, float], value):
    constant, linear, square = quadratic
    return constant + (linear * value if linear else 0.0) + square * (value * value)


def _integrate(z, slopes, k: int):
    """Coefficient k of f o z from those of z and of f' o z."""
    return plus(*(times(z[j], slopes[k - j], j / k) for j in range(1, k + 1)))


def _levels(activation: Activation, plan: Plan, z: Channels, level: int) -> Channels:
    """The series of the derivative number `level` of f, composed with z."""
    depth = max([*plan.orders, 2 if plan.laplacian is not None else 0], default=0)
    f = activation.derivatives(z[0], level + depth)
    out: list[Any] = [f[level]]
    for x in _directions(plan, z):
        order = len(x) - 1
        # From the highest derivative, of which the value is enough, down to the wanted one.
        series = [f[level + order]]
        for lower in range(order - 1, -1, -1):
            rising = [_integrate(x, series, k) for k in range(1, order - lower + 1)]
            series = [f[level + lower], *rising]
        out += series[1:]
    if plan.laplacian is not None:
        squares = plus(*(times(z[c], z[c], weight) for c, weight in _gradient(plan)))
        out.append(plus(times(f[level + 1], z[-1]), times(f[level + 2], squares)))
    return tuple(out)


@jax.custom_jvp
def multiply(weight: jax.Array, channels: Channels) -> Channels:
    """A weight (out, in) times every channel."""
    return tuple(None if x is None else weight @ x for x in channels)


@multiply.defjvp
def _multiply_jvp(primals, tangents):
    (weight, channels), (d_weight, d_channels) = primals, tangents
    inner = weight.shape[0] > FEW
    # The cotangent of the input is weight.T times the output's. The transposed weight is made once
    # and kept from being folded into the products, which are fast only for untransposed factors.
    turned = lax.optimization_barrier(weight.T) if inner else weight.T

    def tangent(x, dx):
        if x is None:
            return None
        if inner:
            through = lax.dot_general(turned, dx, (((0,), (0,)), ((), ())))
        else:
            through = jnp.stack([(row[:, None] * dx).sum(axis=0) for row in weight])
        return d_weight @ x + through

    out = tuple(map(tangent, channels, d_channels))
    return multiply(weight, channels), out
