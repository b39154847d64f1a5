"""Taylor coefficients of any differentiable function, by nested forward differentiation."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from unpinn.network._plan import Plan
from unpinn.network._series import Series


def propagate_by_jvp(
    function: Callable[[jax.Array], jax.Array], points: jax.Array, plan: Plan
) -> Series:
    """The series of a function from points (n, d) to columns (n, w), row by row independent.

    Slower than the stacked rule and growing with the order, but it asks nothing of the function
    except that JAX can differentiate it.

    >>> plan = Plan(1, ((1,),), (2,))
    >>> series = propagate_by_jvp(lambda x: x**3, jnp.array([[2.0]]), plan)
    >>> [float(c) for c in series.stack.ravel()]  # 8, 12, 12/2
    [8.0, 12.0, 6.0]
    """
    rows = [function(points)]
    for direction, order in zip(plan.directions, plan.orders, strict=True):
        rows += _along(function, points, direction, order)
    if plan.laplacian is not None:
        total = jnp.zeros_like(rows[0])
        for axis, weight in enumerate(plan.laplacian):
            if weight != 0.0:
                unit = tuple(int(k == axis) for k in range(plan.dimension))
                total = total + 2.0 * weight * _along(function, points, unit, 2)[1]
        rows.append(total)
    return Series(jnp.stack(rows), plan)


def _along(function, points, direction, order: int) -> list[jax.Array]:
    step = jnp.broadcast_to(jnp.asarray(direction, points.dtype), points.shape)
    derivatives, current = [], function
    for _ in range(order):
        current = _slope(current, step)
        derivatives.append(current)
    return [d(points) / math.factorial(k) for k, d in enumerate(derivatives, start=1)]


def _slope(function, step):
    return lambda points: jax.jvp(function, (points,), (step,))[1]
