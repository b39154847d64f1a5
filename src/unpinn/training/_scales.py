r"""How large an equation is, so that its residual can be judged without units.

An equation's size is the root mean square of what its parts contribute: with the residual
$R(c_1, c_2, \dots)$ a function of the derivatives $c_i$ it reads,
$$S^2 = \Big\langle R(0)^2 + \sum_i \Big(\frac{\partial R}{\partial c_i} c_i\Big)^2 \Big\rangle,$$
which for $u_{tt} - c^2 u_{xx}$ is $\langle u_{tt}^2\rangle + c^4\langle u_{xx}^2\rangle$: the terms
that cancel in the residual do not cancel in its size.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn.network import Model
from unpinn.problem import Expression
from unpinn.training._objective import Objective, PointTerm

_MOST_POINTS = 2048


def measured_scales(objective: Objective, model: Model) -> dict[str, float]:
    """Every equation's and condition's size for the fields as the model has them now.

    A condition is measured over the equations' points, not its own: where it holds already, what it
    reads may be next to nothing, which says nothing about its size.
    """
    return _sizes(objective, model, _current_values)


def reference_scales(objective: Objective, model: Model) -> dict[str, float]:
    r"""Sizes for fields that nobody has fitted yet: half a wave of one unit over the domain.

    A derivative of order k in a coordinate of half width h is taken as $(\pi/2h)^k$ units.
    """
    return _sizes(objective, model, _reference_values)


def _sizes(objective: Objective, model: Model, values_of) -> dict[str, float]:
    if objective.equations is None:
        return {}
    step = max(1, objective.equations.points.shape[0] // _MOST_POINTS)
    points = objective.equations.points[::step]
    sizes: dict[str, float] = {}
    for term in (objective.equations, *objective.conditions):
        for expression in term.expressions:
            size = float(_size(expression, model, jnp.asarray(points), values_of))
            sizes[expression.name] = size if 0 < size < float("inf") else 1.0
    return sizes


@eqx.filter_jit
def _size(expression: Expression, model: Model, points: jax.Array, values_of) -> jax.Array:
    """The size S of one expression over points."""
    values = values_of(expression, model, points)
    coordinates = {n: points[:, k] for k, n in enumerate(model.layout.coordinates)}
    unknowns = {name: v.astype(points.dtype) for name, v in model.unknowns().items()}
    count = (points.shape[0], expression.components)
    keys, parts = list(values), list(values.values())

    def residual(parts):
        result = expression(dict(zip(keys, parts, strict=True)), unknowns, coordinates)
        return jnp.broadcast_to(result, count).astype(points.dtype)

    total = jnp.mean(residual([jnp.zeros_like(part) for part in parts]) ** 2)
    for number, part in enumerate(parts):
        tangent = [part if k == number else jnp.zeros_like(part) for k in range(len(parts))]
        share = jax.jvp(residual, (parts,), (tangent,))[1]
        total = total + jnp.mean(share**2)
    return jnp.sqrt(total)


def _current_values(expression: Expression, model: Model, points: jax.Array):
    return model.derivatives(points, expression.derivatives) if expression.derivatives else {}


def _reference_values(expression: Expression, model: Model, points: jax.Array):
    layout = model.layout
    ones = jnp.ones(points.shape[0], points.dtype)
    space = sum(layout.space)
    values = {}
    for derivative in sorted(expression.derivatives, key=repr):
        waves = (np.pi / 2) ** derivative.order
        waves *= space if isinstance(derivative.orders, str) else 1
        values[derivative] = ones * (layout.factor(derivative) * waves)
    return values


def used_scales(objective: Objective) -> dict[str, float]:
    """What each equation and condition is divided by."""
    terms = ([] if objective.equations is None else [objective.equations]) + list(
        objective.conditions
    )
    return {
        name: float(scale)
        for term in terms
        for name, scale in zip(term.names, np.asarray(term.scales), strict=True)
    }


def with_scales(objective: Objective, scales: dict[str, float]) -> Objective:
    """The objective with residuals divided by other scales."""

    def rescaled(term: PointTerm) -> PointTerm:
        values = [scales.get(name, 1.0) for name in term.names]
        return eqx.tree_at(lambda t: t.scales, term, jnp.asarray(values, term.points.dtype))

    equations = None if objective.equations is None else rescaled(objective.equations)
    conditions = tuple(rescaled(term) for term in objective.conditions)
    return Objective(
        objective.data, equations, conditions, objective.weights, objective.names, objective.block
    )
