"""A fit as a plain function of JAX: compiled, differentiated and mapped like any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn import precision as precision_of
from unpinn._errors import UserError
from unpinn.problem import Expression
from unpinn.training import Fit
from unpinn.training._fit import _reader as reader


def as_function(
    fit: Fit, what: Sequence[str] | str | None = None, precision: str = "float32"
) -> Callable[[Any], jax.Array]:
    """A pure function from a point to a number, or from points to numbers.

    It takes a point (dimensions,) or points (n, dimensions), in the order of the problem's
    coordinates and in the user's units, and gives one number (or one a row). With several
    quantities it gives one more axis. It can be used under `jax.jit`, `jax.grad` and `jax.vmap`;
    derivatives are also had by name, exactly and cheaply: `as_function(fit, "u.xx")`.

    Arguments:
        fit: a fit; of an ensemble the mean over members is given.
        what: a field, a derivative such as "u.xx", or a measurement; several of them; all fields
            unless told.
        precision: "float32", or "float64" (to be called within `unpinn.precision.scope`).
    """
    kind = np.dtype(precision_of.check(precision))
    names = fit.problem.columns if what is None else (what,) if isinstance(what, str) else what
    expressions = tuple(reader(fit.problem, name) for name in names)
    if not expressions:
        raise UserError("a function needs at least one quantity to give")
    many = fit.members is not None
    with precision_of.scope("float64"):
        model = precision_of.cast(fit.members if many else fit.model, precision)
        model = jax.tree_util.tree_map(
            lambda leaf: np.asarray(leaf) if eqx.is_array(leaf) else leaf, model
        )
    single = isinstance(what, str)

    def function(points: Any) -> jax.Array:
        if precision == "float64" and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            raise UserError("call this within unpinn.precision.scope('float64')")
        points = jnp.asarray(points, kind)
        if points.ndim not in (1, 2) or points.shape[-1] != fit.problem.dimension:
            names = ", ".join(fit.problem.coordinates)
            raise UserError(f"points must have the {fit.problem.dimension} coordinates {names}")
        # Numbers of the host until here, so that any precision's scope can take them.
        here = jax.tree_util.tree_map(
            lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, model
        )
        values = _evaluate(here, many, expressions, jnp.atleast_2d(points))
        values = values[:, 0] if single else values
        return values[0] if points.ndim == 1 else values

    return function


def _evaluate(
    model: Any, many: bool, expressions: tuple[Expression, ...], points: jax.Array
) -> jax.Array:
    if not many:
        return jnp.concatenate(model.evaluate_all(expressions, points), axis=1)
    arrays, rest = eqx.partition(model, eqx.is_array)

    def one(part: Any) -> jax.Array:
        return jnp.concatenate(eqx.combine(part, rest).evaluate_all(expressions, points), axis=1)

    return jax.vmap(one)(arrays).mean(axis=0)
