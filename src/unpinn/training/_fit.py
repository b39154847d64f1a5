"""The record of a fit: what was asked, what was found, and how it went."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn._errors import UserError
from unpinn.network import Model
from unpinn.problem import Derivative, Expression, FieldValue, Observations, Problem
from unpinn.problem._expression import trace
from unpinn.training._history import History
from unpinn.training._objective import make_data_term, measure
from unpinn.training._protocol import Protocol
from unpinn.training._records import Partition, Pruning, Status, Versions

_CHUNK = 16_384


@dataclass(frozen=True, eq=False)
class Fit:
    """A trained model with everything that led to it.

    Arguments:
        problem: what was asked.
        observations: the readings, or None.
        model: the fields and unknowns.
        protocol: how it was trained.
        seed: of everything random.
        history: every term at every epoch.
        status: why it stopped.
        seconds: compile, first and steady time of each stage, and the total.
        method: "pinn", "ppinn", or a rival's name.
        recipe: which variant of the method.
        partition: which readings were retained, after unlearning.
        pruning: which neurons were removed, after unlearning.
        before: the fit that this one was made from, after unlearning.
        members: models of an ensemble or posterior, stacked along a leading axis; predictions are
            then their mean.
        optimiser: the last stage's state.
        details: more numbers and words, in JSON's types.
        versions: what computed it.
    """

    problem: Problem
    observations: Observations | None
    model: Model
    protocol: Protocol
    seed: int
    history: History
    status: Status
    seconds: Mapping[str, float]
    method: str = "pinn"
    recipe: str = "default"
    partition: Partition | None = None
    pruning: Pruning | None = None
    before: Fit | None = None
    members: Model | None = None
    optimiser: tuple[np.ndarray, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    versions: Versions = field(default_factory=Versions.here)

    # -- what was found --------------------------------------------------------------------

    @property
    def precision(self) -> str:
        """In which precision the model is held."""
        return precision.of(self.model)

    @cached_property
    def unknowns(self) -> dict[str, float]:
        """The unknown numbers in the user's units (the mean over members, if there are any)."""
        return {name: float(np.mean(values)) for name, values in self.unknown_samples.items()}

    @cached_property
    def unknown_samples(self) -> dict[str, np.ndarray]:
        """The unknown numbers of every member, (members,); of the one model without members."""
        source = self.model if self.members is None else self.members
        with precision.scope(self.precision):
            return {n: np.atleast_1d(np.asarray(v)) for n, v in source.unknowns().items()}

    def predict(self, points: Any, what: str | None = None) -> Any:
        """Fields at points: all columns by name, or one derivative such as "u.xx" or "a".

        Arguments:
            points: (n, dimensions), or a mapping from coordinate to (n,) array.
            what: a field, a derivative of one, or a measurement; all columns unless told.
        """
        if what is not None:
            return self.evaluate(_reader(self.problem, what), points)[:, 0]
        columns = self.problem.columns
        functions = tuple(self.problem.measured_expressions[name] for name in columns)
        values = self._evaluate(functions, points).mean(axis=0)
        return {name: values[:, k] for k, name in enumerate(columns)}

    def predict_samples(self, points: Any, what: str) -> np.ndarray:
        """A derivative or field for every member, (members, n)."""
        return self._evaluate((_reader(self.problem, what),), points)[:, :, 0]

    def evaluate(self, expression: Expression | Callable[..., Any], points: Any) -> np.ndarray:
        """Any function of fields, unknowns and coordinates at points, (n, components)."""
        if not isinstance(expression, Expression):
            expression = trace("function", "evaluate", expression, self.problem.symbols)
        return self._evaluate((expression,), points).mean(axis=0)

    def residual(self, points: Any) -> np.ndarray:
        """The equations' residuals at points, (n, all components)."""
        return self._evaluate(self.problem.equation_expressions, points).mean(axis=0)

    def predicted_readings(self, observations: Observations | None = None) -> np.ndarray:
        """What the instruments should show, (N, quantities)."""
        observations = observations or self._readings()
        term = make_data_term(self.problem, observations)
        kind = np.dtype(self.precision)
        parts = []
        with precision.scope(self.precision):
            for begin in range(0, len(observations), _CHUNK):
                points = jnp.asarray(observations.points[begin : begin + _CHUNK], kind)
                parts.append(
                    _measured(self._source(), self.members is not None, term.expressions, points,
                              term.offsets, term.quadrature)
                )  # fmt: skip
        return np.concatenate([np.asarray(p, np.float64) for p in parts], axis=1).mean(axis=0)

    def misfits(self, observations: Observations | None = None) -> np.ndarray:
        """Prediction minus reading, (N, quantities), NaN where a reading lacks the quantity."""
        observations = observations or self._readings()
        return self.predicted_readings(observations) - observations.values

    @property
    def neurons_left(self) -> int:
        """Hidden neurons that are not removed."""
        return sum(self.model.network.alive)

    @property
    def suspects(self) -> np.ndarray:
        """Row numbers of the readings that were found suspect, worst first."""
        if self.partition is None:
            raise UserError("this fit has no partition; call unpinn.unlearn(fit) first")
        rows = np.flatnonzero(self.partition.suspect)
        return rows[np.argsort(-self.partition.score[rows], kind="stable")]

    def with_details(self, **details: Any) -> Fit:
        """A copy that tells more."""
        return replace(self, details={**self.details, **details})

    # -- keeping it ------------------------------------------------------------------------

    def save(self, directory: Any, overwrite: bool = False) -> None:
        """Write everything to a directory: JSON for what is read, safetensors for arrays."""
        from unpinn.training._store import save

        save(self, directory, overwrite)

    def report(self, directory: Any, overwrite: bool = False) -> Any:
        """Write the page (index.html), tables of suspects and unknowns.json; gives the page.

        Arguments:
            directory: where to.
            overwrite: whether an earlier report there may be replaced.
        """
        from unpinn.report import write_report

        return write_report(self, directory, overwrite=overwrite)

    def _repr_html_(self) -> str:
        from unpinn.report import fit_html

        return fit_html(self)

    # -- inside ----------------------------------------------------------------------------

    def _readings(self) -> Observations:
        if self.observations is None:
            raise UserError("this fit has no readings; pass some")
        return self.observations

    def _source(self) -> Model:
        return self.model if self.members is None else self.members

    def _evaluate(self, expressions: tuple[Expression, ...], points: Any) -> np.ndarray:
        points = self._points(points)
        parts = []
        with precision.scope(self.precision):
            for begin in range(0, len(points), _CHUNK):
                chunk = jnp.asarray(points[begin : begin + _CHUNK], np.dtype(self.precision))
                parts.append(
                    _evaluated(self._source(), self.members is not None, expressions, chunk)
                )
        return np.concatenate([np.asarray(p, np.float64) for p in parts], axis=1)

    def _points(self, points: Any) -> np.ndarray:
        names = tuple(self.problem.coordinates)
        if isinstance(points, Mapping):
            missing = [name for name in names if name not in points]
            if missing:
                raise UserError(f"the points lack the coordinate {missing[0]!r}")
            columns = [np.asarray(points[name], np.float64).ravel() for name in names]
            points = np.stack(np.broadcast_arrays(*columns), axis=1)
        points = np.asarray(points, np.float64)
        if points.ndim != 2 or points.shape[1] != len(names):
            raise UserError(
                f"points must be an array (n, {len(names)}) of {', '.join(names)}, not of shape "
                f"{points.shape}"
            )
        return points


@eqx.filter_jit
def _evaluated(model: Model, many: bool, expressions, points) -> jax.Array:
    def one(model: Model):
        return jnp.concatenate(model.evaluate_all(expressions, points), axis=1)

    return _each(one, model) if many else one(model)[None]


@eqx.filter_jit
def _measured(model: Model, many: bool, expressions, points, offsets, quadrature) -> jax.Array:
    def one(model: Model):
        return measure(model, expressions, points, offsets, quadrature)

    return _each(one, model) if many else one(model)[None]


def _each(function, members: Model):
    """One member after another, so that memory does not grow with their number."""
    arrays, rest = eqx.partition(members, eqx.is_array)
    return jax.lax.map(lambda part: function(eqx.combine(part, rest)), arrays)


def _reader(problem: Problem, what: str) -> Expression:
    """The expression that a text such as "u", "u.xx" or "u.d('radius', 2)" names."""
    if what in problem.measured_expressions:
        return problem.measured_expressions[what]
    field_name, _, attribute = what.partition(".")
    if field_name not in problem.columns:
        raise UserError(
            f"{what!r} is not a field, a derivative of one, or a measurement "
            f"(fields: {', '.join(problem.columns)})"
        )
    found: list[Derivative] = []
    probe = FieldValue(field_name, tuple(problem.coordinates), lambda d: found.append(d))
    if attribute.startswith("d(") and attribute.endswith(")"):
        import ast

        try:
            items = ast.literal_eval(f"({attribute[2:-1]},)")
        except (ValueError, SyntaxError):
            raise UserError(f"{what!r} cannot be read as a derivative") from None
        probe.d(*items)
    else:
        getattr(probe, attribute)
    if not found:
        raise UserError(f"{what!r} cannot be read as a derivative")
    derivative = found[0]
    return Expression(
        what, _read(field_name, derivative), problem.symbols, (field_name,),
        frozenset({derivative}), 1,
    )  # fmt: skip


@cache
def _read(field_name: str, derivative: Derivative) -> Callable[..., Any]:
    """A function that reads one derivative; the same one every time, to share compiled programs."""

    def read(**chosen: FieldValue) -> Any:
        return chosen[field_name]._look_up(derivative)

    only = inspect.Parameter(field_name, inspect.Parameter.KEYWORD_ONLY)
    read.__signature__ = inspect.Signature([only])  # type: ignore[attr-defined]
    return read
