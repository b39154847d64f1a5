"""A user's function of fields, unknowns and coordinates, read once to learn what it needs."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from unpinn._errors import UserError
from unpinn.problem._derivatives import Derivative, FieldValue

_TRACED_POINTS = 7


@dataclass(frozen=True)
class Symbols:
    """The names that an equation's arguments can select."""

    coordinates: tuple[str, ...]
    fields: tuple[str, ...]
    scalars: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name."""
        return self.fields + self.scalars + self.coordinates


@dataclass(frozen=True)
class Expression:
    """A function of fields, unknowns and coordinates, with what tracing it has learnt.

    Arguments:
        name: what errors and histories call it.
        function: the user's function; its argument names select what it is given.
        symbols: the names there are.
        derivatives: the derivatives it reads.
        components: how many values it gives at a point.
    """

    name: str
    function: Callable[..., Any]
    symbols: Symbols
    arguments: tuple[str, ...] = ()
    derivatives: frozenset[Derivative] = field(default=frozenset())
    components: int = 1

    def __call__(
        self,
        values: Mapping[Derivative, jax.Array],
        scalars: Mapping[str, jax.Array],
        coordinates: Mapping[str, jax.Array],
    ) -> jax.Array:
        """Evaluate at n points; gives (n, components)."""
        return _stack(self._apply(lambda key: values[key], scalars, coordinates))

    def _apply(self, look_up, scalars, coordinates) -> Any:
        call = inspect.signature(self.function).bind_partial()
        for name in self.arguments:
            if name in self.symbols.fields:
                call.arguments[name] = FieldValue(name, self.symbols.coordinates, look_up)
            elif name in self.symbols.scalars:
                call.arguments[name] = scalars[name]
            else:
                call.arguments[name] = coordinates[name]
        return self.function(*call.args, **call.kwargs)


def _stack(result: Any) -> jax.Array:
    parts = list(result) if isinstance(result, (tuple, list)) else [result]
    parts = [part.value if isinstance(part, FieldValue) else jnp.asarray(part) for part in parts]
    columns = [part[:, None] if part.ndim == 1 else part for part in parts]
    return jnp.concatenate(columns, axis=1) if len(columns) > 1 else columns[0]


def trace(what: str, name: str, function: Callable[..., Any], symbols: Symbols) -> Expression:
    """Read a function once, without computing, to learn its derivatives and components.

    Arguments:
        what: "equation", "condition" or "measurement", for the error's sentence.
        name: its name.
        function: the user's function.
        symbols: the names its arguments may select.
    """
    arguments = _arguments(what, name, function, symbols)
    draft = Expression(name, function, symbols, arguments)
    needed: set[Derivative] = set()

    def run(points, scalars):
        def look_up(derivative: Derivative):
            needed.add(derivative)
            return points

        coordinates = dict.fromkeys(symbols.coordinates, points)
        unknowns = dict.fromkeys(symbols.scalars, scalars)
        result = draft._apply(look_up, unknowns, coordinates)
        parts = result if isinstance(result, (tuple, list)) else [result]
        return [_array(part) for part in parts]

    point = jax.ShapeDtypeStruct((_TRACED_POINTS,), jnp.float32)
    try:
        shapes = jax.eval_shape(run, point, jax.ShapeDtypeStruct((), jnp.float32))
    except UserError as error:
        raise type(error)(f"{what} {name!r}: {error}") from None
    except Exception as error:
        raise UserError(f"{what} {name!r} {_explain(error, draft)}") from error
    components = _count(what, name, shapes)
    return Expression(name, function, symbols, arguments, frozenset(needed), components)


def _array(part: Any) -> Any:
    if isinstance(part, FieldValue):
        return part.value
    if hasattr(part, "shape") or isinstance(part, (int, float)):
        return part
    raise UserError(f"must give one value a point (or a tuple of such), but gave {part!r}")


def _explain(error: Exception, expression: Expression) -> str:
    """What went wrong in a user's function, and what to do about it."""
    concrete = (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError)
    told = str(error)
    if isinstance(error, concrete) or any(sign in told for sign in _SIGNS_OF_A_NUMBER):
        return (
            "uses NumPy, math or a Python condition on a field or unknown, which cannot be "
            "differentiated; write it with jax.numpy (jnp.sin, jnp.where)"
        )
    if "__jax_array__" in told:
        return (
            "hands a field itself to a function of jax.numpy; hand over its value instead, as in "
            "jnp.sin(u.value)"
        )
    if isinstance(error, AttributeError) and "Tracer" in told:
        fields = [name for name in expression.arguments if name in expression.symbols.fields]
        others = [name for name in expression.arguments if name not in fields]
        return (
            f"asks for .{told.split()[-1]} of something that has no derivatives "
            f"({', '.join(others + [f'{name}.value' for name in fields])}, or an array made of "
            "them); only fields have, and an unknown that varies must be declared as a Field"
        )
    return f"raised {type(error).__name__}: {told}"


# How NumPy and JAX begin when an array is asked to be one number or one truth.
_SIGNS_OF_A_NUMBER = ("The truth value of an array", "Only scalar arrays can be converted")


def _arguments(what: str, name: str, function: Any, symbols: Symbols) -> tuple[str, ...]:
    if not callable(function):
        raise UserError(
            f"{what} {name!r} must be a function of fields, unknowns and coordinates, "
            f"not {type(function).__name__}"
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        raise UserError(
            f"{what} {name!r} is {function!r}, whose arguments Python cannot tell; wrap it in a "
            "function of fields, unknowns and coordinates"
        ) from None
    arguments: list[str] = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UserError(
                f"{what} {name!r} takes {parameter}, which selects nothing; name the fields, "
                "unknowns and coordinates that it needs"
            )
        if parameter.name in symbols.names:
            arguments.append(parameter.name)
        elif parameter.default is inspect.Parameter.empty:
            close = difflib.get_close_matches(parameter.name, symbols.names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UserError(
                f"{what} {name!r} has an argument {parameter.name!r} that is no field, unknown or "
                f"coordinate of the problem (those are {', '.join(symbols.names)}){hint}"
            )
        # Any other argument has a default (f=f): it is the user's own constant.
    return tuple(arguments)


def _count(what: str, name: str, shapes: list[Any]) -> int:
    components = 0
    for shape in shapes:
        dimensions = getattr(shape, "shape", None)
        if dimensions == (_TRACED_POINTS,):
            components += 1
        elif dimensions is not None and len(dimensions) == 2 and dimensions[0] == _TRACED_POINTS:
            components += dimensions[1]
        else:
            got = "a single number" if dimensions in ((), None) else f"shape {dimensions}"
            raise UserError(
                f"{what} {name!r} must give one value a point (or a tuple of such), but gave {got} "
                f"for {_TRACED_POINTS} points"
            )
    if components == 0:
        raise UserError(f"{what} {name!r} gives nothing; return its residual")
    return components
