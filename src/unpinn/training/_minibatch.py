"""A random part of a loss, drawn anew at every step, equal to the whole in expectation."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

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
    # Rows number, number + steps, number + 2 steps, ... after a random rotation: strided parts
    # are spread over the table, and differ from epoch to epoch by the rotation.
    rotation = jax.random.randint(key, (), 0, rows)
    index = (jnp.arange(batch) * steps + number + rotation) % rows
    fresh = jnp.arange(batch) * steps + number < rows
    weights = data.weights[index] * fresh[:, None]
    return eqx.tree_at(
        lambda d: (d.points, d.values, d.weights),
        data,
        (
            data.points[index],
            data.values[index],
            weights / jnp.maximum(weights.sum(), jnp.finfo(weights.dtype).tiny),
        ),
    )


def _draw(term: PointTerm, batch: int, key: jax.Array) -> PointTerm:
    index = jax.random.randint(key, (batch,), 0, term.points.shape[0])
    return eqx.tree_at(lambda t: t.points, term, term.points[index])
