"""The composite loss: named terms over points, with weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn._errors import UserError
from unpinn.network import Hook, Model
from unpinn.problem import Expression, Measurement, Observations, Problem
from unpinn.training._blocks import blocked_sum, cut
from unpinn.training._penalties import Heteroscedastic, Penalty, Squared

# NumPy float64 when built; a stage turns it into its own precision.
# NumPy arrays until a stage puts them on the device in its precision.
Numbers = Any

# Measured on PInv: blocks of 512 to 1024 points keep a layer's channels in the second-level cache.
BLOCK = 1024
# An accelerator wants work in large pieces; this many points of a large network fit in its memory.
ACCELERATOR_BLOCK = 1 << 17


class PointTerm(eqx.Module):
    """Expressions that should vanish at points: mean squares, one an expression.

    Arguments:
        points: (n, dimensions).
        scales: what each expression is divided by, (expressions,).
        expressions: the equations, or one condition.
        names: what their terms are called.
    """

    points: Numbers
    scales: Numbers
    expressions: tuple[Expression, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def mean_squares(self, model: Model, weights: Numbers, block: int, hook: Hook | None = None):
        """The weighted sum of the terms, and the terms themselves."""
        count = self.points.shape[0]
        scales = self.scales

        def summand(model: Model, points: jax.Array):
            residuals = model.evaluate_all(self.expressions, points, hook)
            squares = [
                jnp.sum((r / s) ** 2) / (count * r.shape[1])
                for r, s in zip(residuals, scales, strict=True)
            ]
            parts = jnp.stack(squares)
            return jnp.dot(weights, parts), jax.lax.stop_gradient(parts)

        if count < 2 * block:
            return summand(model, self.points)
        blocks, rest = cut(self.points, block)
        total, parts = blocked_sum(summand, model, blocks)
        if rest.shape[0]:
            more, others = summand(model, rest)
            total, parts = total + more, parts + others
        return total, parts


class DataTerm(eqx.Module):
    """Readings: what the penalty of their misfits is.

    Arguments:
        points: (n, dimensions), or (n * q, dimensions) where a measurement averages q nodes.
        values: (n, quantities), zero where missing.
        weights: (n, quantities), adding up to one, zero where missing or forgotten.
        scales: each quantity's unit.
        quadrature: for each quantity its nodes' weights.
        expressions: what is measured.
        penalty: what a misfit costs.
    """

    points: Numbers
    values: Numbers
    weights: Numbers
    scales: Numbers
    quadrature: tuple[Numbers | None, ...]
    offsets: tuple[Numbers | None, ...]
    expressions: tuple[Expression, ...] = eqx.field(static=True)
    penalty: Penalty = eqx.field(static=True, default=Squared())

    def misfit(self, model: Model, hook: Hook | None = None) -> jax.Array:
        """Prediction minus reading in units of the scales, zero where missing."""
        predicted = measure(
            model, self.expressions, self.points, self.offsets, self.quadrature, hook
        )
        present = self.weights > 0
        return jnp.where(present, (predicted - self.values) / self.scales, 0.0)

    def __call__(self, model: Model, hook: Hook | None = None) -> jax.Array:
        """The penalty."""
        misfit = self.misfit(model, hook)
        if isinstance(self.penalty, Heteroscedastic):
            level = model.predict(self.points)[:, -misfit.shape[1] :]
            return self.penalty(misfit, self.weights, model, level)
        return self.penalty(misfit, self.weights, model)


def measure(model: Model, expressions, points, offsets, quadrature, hook=None) -> jax.Array:
    """Predicted readings, (n, quantities)."""
    plain = tuple(e for e, o in zip(expressions, offsets, strict=True) if o is None)
    direct = iter(model.evaluate_all(plain, points, hook)) if plain else iter(())
    columns = []
    for expression, offset, weight in zip(expressions, offsets, quadrature, strict=True):
        if offset is None:
            columns.append(next(direct))
            continue
        nodes = (points[:, None, :] + offset[None]).reshape(-1, points.shape[1])
        values = model.evaluate(expression, nodes, hook).reshape(points.shape[0], -1)
        columns.append((values @ weight)[:, None])
    return jnp.concatenate(columns, axis=1)


class Objective(eqx.Module):
    """All terms of a loss: data, equations, conditions; a term that is None is not computed."""

    data: DataTerm | None
    equations: PointTerm | None
    conditions: tuple[PointTerm, ...]
    weights: Numbers
    names: tuple[str, ...] = eqx.field(static=True)
    block: int = eqx.field(static=True, default=BLOCK)

    def __call__(self, model: Model, hook: Hook | None = None) -> tuple[jax.Array, jax.Array]:
        """The weighted sum, and every term unweighted in the order of `names`."""
        total = jnp.zeros((), self.weights.dtype)
        parts = []
        place = 0
        if self.data is not None:
            value = self.data(model, hook)
            total = total + self.weights[0] * value
            parts.append(jax.lax.stop_gradient(value)[None])
            place = 1
        terms = ([] if self.equations is None else [self.equations]) + list(self.conditions)
        for term in terms:
            weights = self.weights[place : place + len(term.names)]
            value, values = term.mean_squares(model, weights, self.block, hook)
            total = total + value
            parts.append(values)
            place += len(term.names)
        return total, jnp.concatenate(parts)

    def only(self, groups: tuple[str, ...]) -> Objective:
        """Without the terms of other groups ("data", "equations", "conditions")."""
        counts = [
            int(self.data is not None),
            0 if self.equations is None else len(self.equations.names),
            sum(len(term.names) for term in self.conditions),
        ]
        keep = []
        for group, count in zip(("data", "equations", "conditions"), counts, strict=True):
            keep += [group in groups] * count
        index = np.flatnonzero(keep)
        if len(index) == 0:
            raise UserError(f"no term of the loss is in {groups}; a stage must train something")
        return Objective(
            self.data if "data" in groups else None,
            self.equations if "equations" in groups else None,
            self.conditions if "conditions" in groups else (),
            self.weights[index],
            tuple(self.names[i] for i in index),
            self.block,
        )

    def weighted(self, weights: Numbers) -> Objective:
        """With other weights."""
        return eqx.tree_at(lambda o: o.weights, self, weights)


def make_data_term(
    problem: Problem,
    observations: Observations,
    weights: Any = None,
    penalty: Penalty | None = None,
    scales: np.ndarray | None = None,
) -> DataTerm:
    """The data term of readings; `weights` (n,) chooses or weighs readings, zero forgets one."""
    expressions = tuple(problem.measured_expressions[q] for q in observations.quantities)
    present = observations.present.astype(np.float64)
    each = np.ones(len(observations)) if weights is None else np.asarray(weights, np.float64)
    share = present * each[:, None]
    if not share.sum() > 0:
        raise UserError("no reading is left to train on: every weight is zero")
    offsets, quadrature = [], []
    for name in observations.quantities:
        own = problem.measurements.get(name)
        names = tuple(problem.coordinates)
        averaged = isinstance(own, Measurement) and bool(own.footprint)
        offsets.append(own.offsets(names) if averaged else None)  # type: ignore[union-attr]
        quadrature.append(own.weights(names) if averaged else None)  # type: ignore[union-attr]
    return DataTerm(
        observations.points,
        np.where(present > 0, observations.values, 0.0),
        share / share.sum(),
        np.ones(len(expressions)) if scales is None else np.asarray(scales, np.float64),
        tuple(quadrature),
        tuple(offsets),
        expressions,
        penalty or Squared(),
    )


def make_objective(
    problem: Problem,
    data: DataTerm | None,
    seed: int,
    weights: Mapping[str, float] | None = None,
    scales: Mapping[str, float] | None = None,
    block: int | None = None,
) -> Objective:
    """The loss of a problem.

    Arguments:
        problem: equations and conditions.
        data: the readings' term, or None without readings.
        seed: draws collocation points where the problem's sampler draws.
        weights: by a term's name, or by its group: "data", "equations", "boundary", "initial",
            "interior"; 1 unless told. The equations' weight is shared out by components, so that
            at weight 1 their terms add up to the mean square over all entries.
        scales: what an equation or condition is divided by, by name; 1 unless told.
        block: points computed at a time; what suits the device unless told.
    """
    weights, scales = dict(weights or {}), dict(scales or {})
    kinds = {c.name: problem.condition_kind(k) for k, c in enumerate(problem.conditions)}
    _check_weights(weights, problem, kinds)
    equations = problem.equation_expressions
    components = sum(e.components for e in equations)
    names, factors = [], []
    if data is not None:
        names.append("data")
        factors.append(weights.get("data", 1.0))
    for e in equations:
        names.append(e.name)
        share = e.components / components
        factors.append(weights.get(e.name, weights.get("equations", 1.0)) * share)
    scale = lambda name: float(scales.get(name, 1.0))  # noqa: E731
    equation_term = PointTerm(
        problem.collocation_points(seed),
        np.array([scale(e.name) for e in equations]),
        equations,
        tuple(e.name for e in equations),
    )
    conditions = []
    for number, (condition, e) in enumerate(
        zip(problem.conditions, problem.condition_expressions, strict=True)
    ):
        kind = kinds[condition.name]
        names.append(condition.name)
        factors.append(condition.weight * weights.get(condition.name, weights.get(kind, 1.0)))
        points = problem.condition_points(number, seed)
        conditions.append(PointTerm(points, np.array([scale(e.name)]), (e,), (e.name,)))
    if block is None:
        block = BLOCK if jax.default_backend() == "cpu" else ACCELERATOR_BLOCK
    return Objective(data, equation_term, tuple(conditions), np.array(factors), tuple(names), block)


def _check_weights(weights: dict, problem: Problem, kinds: dict[str, str]) -> None:
    known = {"data", "equations", "boundary", "initial", "interior"}
    known |= set(problem.equations) | set(kinds)
    for name, weight in weights.items():
        if name not in known:
            raise UserError(
                f"there is no term {name!r} to weigh (terms: {', '.join(sorted(known))})"
            )
        if not (np.isfinite(weight) and weight >= 0):
            raise UserError(f"the weight of {name!r} must be a finite number of zero or more")
