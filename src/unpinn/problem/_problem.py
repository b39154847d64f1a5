"""The statement of an inverse problem, as it is written on paper."""

from __future__ import annotations

import inspect
import keyword
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.problem._conditions import Condition
from unpinn.problem._derivatives import ARRAY_ATTRIBUTES
from unpinn.problem._expression import Expression, Symbols, trace
from unpinn.problem._fingerprint import fingerprint
from unpinn.problem._measurement import Measurement
from unpinn.problem._sampling import Sampler, Sobol
from unpinn.problem._unknowns import Field, Scalar

# What a field answers to besides its derivatives: no coordinate can be called so.
_RESERVED = {"d", "laplacian", "value", *ARRAY_ATTRIBUTES}
_DEFAULT_COLLOCATION = Sobol(2048)


@dataclass(frozen=True, eq=False)
class Problem:
    """Coordinates, fields, unknowns, equations and conditions.

    Arguments:
        coordinates: each coordinate's lowest and highest value; the domain is this box.
        fields: the names of the fields.
        unknowns: `Scalar` and `Field` coefficients to be found.
        equations: residuals, functions of fields, unknowns and coordinates.
        conditions: what holds on boundaries and at the start.
        measurements: measured quantities that are not simply a field, by name.
        collocation: where the equations are enforced; 2048 Sobol points unless told.
        time: the time coordinate; "t" or "time" if there is one of that name.
        scales: expected sizes of fields that no reading shows (a pressure, say).
        name: what it is called in reports.
        source: where the statement came from (a benchmark, a file), as plain data.

    >>> beam = Problem(
    ...     coordinates={"x": (0, 1), "t": (0, 1)},
    ...     fields=["u"],
    ...     unknowns=[Scalar("alpha", initial=0.5)],
    ...     equations={"beam": lambda u, alpha: u.tt + alpha**2 * u.xxxx},
    ... )
    >>> beam.highest_order
    4
    """

    coordinates: Mapping[str, Sequence[float | int]]
    fields: Sequence[str]
    equations: Mapping[str, Callable[..., Any]]
    unknowns: Sequence[Scalar | Field] = ()
    conditions: Sequence[Condition] = ()
    measurements: Mapping[str, Callable[..., Any] | Measurement] = field(default_factory=dict)
    collocation: Sampler = _DEFAULT_COLLOCATION
    time: str | None = None
    scales: Mapping[str, float | int] = field(default_factory=dict)
    name: str = "problem"
    source: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        put = lambda key, value: object.__setattr__(self, key, value)  # noqa: E731
        for part in ("coordinates", "equations", "measurements", "scales"):
            if not isinstance(getattr(self, part), Mapping):
                raise UserError(f"{part} must be a mapping from names, such as {{'name': ...}}")
        put("coordinates", {n: _ends(n, e) for n, e in self.coordinates.items()})
        put("equations", dict(self.equations))
        put("scales", dict(self.scales))
        put("fields", tuple([self.fields] if isinstance(self.fields, str) else self.fields))
        put("unknowns", tuple(self.unknowns))
        put("conditions", tuple(self.conditions))
        if self.time is None:
            put("time", next((n for n in ("t", "time") if n in self.coordinates), None))
        self._check_parts()
        self._check_names()
        measurements = self.measurements.items()
        put(
            "measurements",
            {n: m if isinstance(m, Measurement) else Measurement(m) for n, m in measurements},
        )
        # Reading them here means that a mistake is told where it is written.
        _ = (self.equation_expressions, self.condition_expressions, self.measured_expressions)
        for number in range(len(self.conditions)):
            self.condition_kind(number)

    # -- names -----------------------------------------------------------------------------

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """The unknown numbers."""
        return tuple(u for u in self.unknowns if isinstance(u, Scalar))

    @property
    def unknown_fields(self) -> tuple[Field, ...]:
        """The unknown coefficient fields."""
        return tuple(u for u in self.unknowns if isinstance(u, Field))

    @property
    def columns(self) -> tuple[str, ...]:
        """The network's outputs: the fields, then the unknown fields."""
        return tuple(self.fields) + tuple(u.name for u in self.unknown_fields)

    @property
    def space(self) -> tuple[str, ...]:
        """The coordinates other than time."""
        return tuple(n for n in self.coordinates if n != self.time)

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return len(self.coordinates)

    @cached_property
    def symbols(self) -> Symbols:
        """What an equation's arguments may be called."""
        return Symbols(
            tuple(self.coordinates), self.columns, tuple(scalar.name for scalar in self.scalars)
        )

    # -- what is asked ---------------------------------------------------------------------

    @cached_property
    def equation_expressions(self) -> tuple[Expression, ...]:
        """The traced equations."""
        return tuple(trace("equation", n, f, self.symbols) for n, f in self.equations.items())

    @cached_property
    def condition_expressions(self) -> tuple[Expression, ...]:
        """The traced conditions."""
        return tuple(trace("condition", c.name, c.residual, self.symbols) for c in self.conditions)

    @cached_property
    def measured_expressions(self) -> dict[str, Expression]:
        """What can be measured: every field, and the problem's own measurements."""
        plain = {name: _itself(name) for name in self.columns}
        own = {n: m.function for n, m in self.measurements.items() if isinstance(m, Measurement)}
        return {
            name: trace("measurement", name, function, self.symbols)
            for name, function in {**plain, **own}.items()
        }

    @property
    def highest_order(self) -> int:
        """The highest order of derivative that any equation or condition reads."""
        expressions = (*self.equation_expressions, *self.condition_expressions)
        return max((d.order for e in expressions for d in e.derivatives), default=0)

    def collocation_points(self, seed: int) -> np.ndarray:
        """Where the equations are enforced, (n, dimensions)."""
        return self.collocation.draw(self.coordinates, seed)

    def condition_points(self, number: int, seed: int) -> np.ndarray:
        """Where one condition is enforced."""
        return self.conditions[number].draw(self.coordinates, self.time, seed)

    def condition_kind(self, number: int) -> str:
        """Whether a condition is "initial", "boundary" or "interior"."""
        return self.conditions[number].kind(self.coordinates, self.time)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the statement, the functions' code included, that tells problems apart."""
        statement = (
            self.name, self.coordinates, self.time, self.fields, self.unknowns, self.equations,
            self.conditions, self.measurements, self.collocation, self.scales,
        )  # fmt: skip
        return fingerprint(statement)

    # -- checks ----------------------------------------------------------------------------

    def _check_names(self) -> None:
        if not self.coordinates:
            raise UserError("a problem needs at least one coordinate")
        if not self.fields:
            raise UserError("a problem needs at least one field")
        if not self.equations:
            raise UserError("a problem needs at least one equation")
        names = [*self.coordinates, *self.fields, *(u.name for u in self.unknowns)]
        for name in names:
            if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
                raise UserError(
                    f"{name!r} cannot name a coordinate, field or unknown, because no function can "
                    "have an argument of that name; choose another"
                )
            if name in self.coordinates and (name in _RESERVED or name.startswith("_")):
                raise UserError(
                    f"{name!r} cannot name a coordinate, because u.{name} is something else; "
                    "choose another"
                )
            if names.count(name) > 1:
                raise UserError(f"{name!r} names two things; every name must be its own")
        if self.time is not None and self.time not in self.coordinates:
            raise UserError(f"the time coordinate {self.time!r} is not among the coordinates")
        for name, scale in self.scales.items():
            if name not in self.fields or not (math.isfinite(scale) and scale > 0):
                raise UserError(f"scales[{name!r}] must be a positive number for one of the fields")
        for name in self.measurements:
            if name in names:
                raise UserError(
                    f"the measurement {name!r} has a name that is taken; choose another"
                )
        terms = [*(condition.name for condition in self.conditions), *self.equations]
        for term in terms:
            if terms.count(term) > 1:
                raise UserError(
                    f"{term!r} names two terms; equations and conditions need own names"
                )
            if term == "data":
                raise UserError("the term 'data' is that of the readings; name yours otherwise")

    def _check_parts(self) -> None:
        for unknown in self.unknowns:
            if not isinstance(unknown, (Scalar, Field)):
                raise UserError(f"the unknown {unknown!r} must be a Scalar or a Field")
        for condition in self.conditions:
            if not isinstance(condition, Condition):
                raise UserError(f"the condition {condition!r} must be a Condition")
        if not isinstance(self.collocation, Sampler):
            raise UserError(
                f"collocation must be a sampler such as Sobol(2048) or Grid(50, 40), "
                f"not {self.collocation!r}"
            )


def _itself(name: str) -> Callable[..., Any]:
    """The function whose one argument, of that name, is also its result."""

    def itself(**chosen: Any) -> Any:
        return chosen[name]

    only = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    itself.__signature__ = inspect.Signature([only])  # type: ignore[attr-defined]
    return itself


def _ends(name: str, ends: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        raise UserError(f"coordinate {name!r} needs a pair (low, high), not {ends!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UserError(f"coordinate {name!r} needs finite ends with low below high, not {ends!r}")
    return low, high
