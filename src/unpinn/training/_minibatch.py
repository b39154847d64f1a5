"""A random part of a loss, drawn anew at every step, equal to the whole in expectation."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn.training._objective import DataTerm, Objective, PointTerm


def batches_an_epoch(objective: Objective, batch: int) -> int:
    """Steps in one pass over the readings (over the collocation points without readings)."""
    rows = objective.data.values.shape[0] if objective.data is not None else 0
    if rows == 0 and objective.equations is not None:
        rows = objective.equations.points.shape[0]
    return max(1, -(-rows // batch))


def take_batch(objective: Objective, batch: int, key: jax.Array, number: jax.Array) -> Objective:
    """The loss over part `number` of an epoch.

    Readings are visited in a pseudo-random order that meets every one once an epoch (an affine walk
    over the rows, so that no permutation of millions has to be stored); points of equations and
    conditions are drawn with replacement.
    """
    data = objective.data
    if data is not None and data.values.shape[0] > batch:
        data = _part(data, batch, key, number)
    draw = jax.random.fold_in(key, number + 1_000_003)
    equations = objective.equations
    if equations is not None and equations.points.shape[0] > batch:
        equations = _draw(equations, batch, draw)
    conditions = tuple(
        _draw(term, batch, jax.random.fold_in(draw, k + 1))
        if term.points.shape[0] > batch
        else term
        for k, term in enumerate(objective.conditions)
    )
    return Objective(
        data, equations, conditions, objective.weights, objective.names, objective.block
    )


def _part(data: DataTerm, batch: int, key: jax.Array, number: jax.Array) -> DataTerm:
    rows = data.values.shape[0]
    steps = -(-rows // batch)
    # A multiple coprime to the number of rows, and a rotation, permute the rows; both are drawn
    # anew every epoch, so that the same readings do not always meet.
    strides = jnp.asarray(_coprime(rows))
    stride = strides[jax.random.randint(key, (), 0, len(strides))]
    rotation = jax.random.randint(jax.random.fold_in(key, 1), (), 0, rows)
    place = number * batch + jnp.arange(batch)
    index = (jnp.minimum(place, rows - 1) * stride + rotation) % rows
    fresh = place < rows
    # As many steps as there are parts: on average a part's penalty is the whole one.
    weights = data.weights[index] * fresh[:, None] * steps
    return eqx.tree_at(
        lambda d: (d.points, d.values, d.weights),
        data,
        (data.points[index], data.values[index], weights),
    )


@lru_cache(maxsize=16)
def _coprime(rows: int) -> np.ndarray:
    """Numbers that share no divisor with `rows`, small enough for 32-bit products."""
    most = min(rows, (2**31 - 1) // rows - 1)
    drawn = np.random.default_rng(rows).integers(1, max(most, 1) + 1, 512)
    good = [int(number) for number in np.unique(drawn) if gcd(int(number), rows) == 1]
    return np.array(good or [1], np.int32)


def _draw(term: PointTerm, batch: int, key: jax.Array) -> PointTerm:
    index = jax.random.randint(key, (batch,), 0, term.points.shape[0])
    return eqx.tree_at(lambda t: t.points, term, term.points[index])
