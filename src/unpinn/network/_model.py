"""A network in the user's units, with the unknown numbers beside it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn._errors import UserError
from unpinn.network._activations import activation as activation_named
from unpinn.network._architectures import ARCHITECTURES
from unpinn.network._fixed import Fixed
from unpinn.network._network import Hook, Network
from unpinn.network._plan import Plan, make_plan
from unpinn.problem import Derivative, Expression, Observations, Problem

Values = dict[Derivative, jax.Array]


@dataclass(frozen=True)
class Layout:
    """What the model's inputs and outputs are called, and how large one unit of each is.

    Arguments:
        coordinates: names of the inputs.
        columns: names of the outputs.
        centre: middle of each coordinate; the network sees (x - centre) / half.
        half: half the width of each coordinate.
        offset: what is added to each output after scaling.
        scale: the size of one unit of each output.
        space: which coordinates the laplacian sums.
        scaled: whether unknown numbers are trained in units of their initial value.
    """

    coordinates: tuple[str, ...]
    columns: tuple[str, ...]
    centre: tuple[float, ...]
    half: tuple[float, ...]
    offset: tuple[float, ...]
    scale: tuple[float, ...]
    space: tuple[bool, ...]
    scaled: bool

    @cached_property
    def unit(self) -> float:
        """The smallest half width in space, whose square the laplacian channel is a unit of."""
        widths = [h for h, s in zip(self.half, self.space, strict=True) if s]
        return min(widths, default=1.0)

    def plan(self, derivatives: frozenset[Derivative]) -> Plan:
        """The plan for a set of derivatives in the network's own coordinates."""
        weights = tuple(
            (self.unit / h) ** 2 if s else 0.0 for h, s in zip(self.half, self.space, strict=True)
        )
        return make_plan(derivatives, len(self.coordinates), weights)

    def factor(self, derivative: Derivative) -> float:
        """What a derivative in network coordinates is multiplied by."""
        scale = self.scale[self.columns.index(derivative.field)]
        if isinstance(derivative.orders, str):
            return scale / self.unit**2
        for half, order in zip(self.half, derivative.orders, strict=True):
            scale /= half**order
        return scale


class Model(eqx.Module):
    """The fields, the unknown fields and the unknown numbers, in the user's units.

    Arguments:
        network: the architecture, from scaled coordinates to scaled columns.
        scalars: the unknown numbers as they are trained; `unknowns` gives natural units.
        extras: further trained numbers of a method (noise levels, say).
        layout: names and units.
    """

    network: Network
    scalars: dict[str, jax.Array]
    extras: dict[str, jax.Array]
    layout: Layout = eqx.field(static=True)
    transforms: tuple[Any, ...] = eqx.field(static=True)

    def unknowns(self) -> dict[str, jax.Array]:
        """The unknown numbers in the user's units."""
        return {
            scalar.name: scalar.natural(self.scalars[scalar.name], self.layout.scaled)
            for scalar in self.transforms
        }

    def derivatives(
        self, points: jax.Array, wanted: frozenset[Derivative], hook: Hook | None = None
    ) -> Values:
        """Derivatives of the columns at points (n, d) in the user's units."""
        layout = self.layout
        series = self.network.propagate(self.inputs(points), layout.plan(wanted), hook)
        out: Values = {}
        # Sorted, since the order of a set differs between processes and results must not.
        for derivative in sorted(wanted, key=repr):
            column = layout.columns.index(derivative.field)
            value = series.of_neuron(column, derivative.orders)
            factor = layout.factor(derivative)
            value = value if factor == 1.0 else value * factor
            if derivative.order == 0 and layout.offset[column] != 0.0:
                value = value + layout.offset[column]
            out[derivative] = value
        return out

    def inputs(self, points: jax.Array) -> jax.Array:
        """The coordinates as the network sees them."""
        centre, half = self.layout.centre, self.layout.half
        if not any(centre) and all(h == 1.0 for h in half):
            return points
        shift, width = (jnp.asarray(np.array(a), points.dtype) for a in (centre, half))
        return (points - shift) / width

    def evaluate(
        self, expression: Expression, points: jax.Array, hook: Hook | None = None
    ) -> jax.Array:
        """An equation, condition or measurement at points, (n, components)."""
        return self.evaluate_all((expression,), points, hook)[0]

    def evaluate_all(
        self, expressions: tuple[Expression, ...], points: jax.Array, hook: Hook | None = None
    ) -> list[jax.Array]:
        """Several expressions at the same points with one pass through the network."""
        wanted = frozenset().union(*(e.derivatives for e in expressions))
        values = self.derivatives(points, wanted, hook) if wanted else {}
        coordinates = {n: points[:, k] for k, n in enumerate(self.layout.coordinates)}
        unknowns = {name: value.astype(points.dtype) for name, value in self.unknowns().items()}
        return [
            jnp.broadcast_to(
                e(values, unknowns, coordinates), (points.shape[0], e.components)
            ).astype(points.dtype)
            for e in expressions
        ]

    def predict(self, points: jax.Array) -> jax.Array:
        """All columns at points, (n, columns)."""
        out = self.network(self.inputs(points))
        scale, offset = (
            jnp.asarray(np.array(a), out.dtype) for a in (self.layout.scale, self.layout.offset)
        )
        return out * scale + offset


# What `make` of an architecture takes that is said elsewhere than in its options.
_NOT_OPTIONS = ("key", "inputs", "outputs", "width", "depth", "activation")


@dataclass(frozen=True)
class Architecture:
    """Which network to draw, as plain configuration.

    >>> Architecture(width=20, depth=2).kind
    'mlp'
    """

    kind: str = "mlp"
    width: int = 100
    depth: int = 5
    activation: str = "tanh"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if self.kind not in ARCHITECTURES:
            raise UserError(
                f"architecture {self.kind!r} is not known; choose one of {', '.join(ARCHITECTURES)}"
            )
        if self.width < 1 or self.depth < 1:
            raise UserError("an architecture needs a width and a depth of 1 or more")
        activation_named(self.activation)
        drawn = inspect.signature(ARCHITECTURES[self.kind].make)  # type: ignore[attr-defined]
        known = [name for name in drawn.parameters if name not in _NOT_OPTIONS]
        for name in self.options:
            if name not in known:
                raise UserError(
                    f"architecture {self.kind!r} has no option {name!r}; it has {', '.join(known)}"
                )

    def __hash__(self) -> int:
        return hash((self.kind, self.width, self.depth, self.activation, repr(self.options)))

    def make(self, key: jax.Array, inputs: int, outputs: int) -> Network:
        """Draw the network."""
        return ARCHITECTURES[self.kind].make(  # type: ignore[attr-defined]
            key, inputs, outputs, width=self.width, depth=self.depth,
            activation=self.activation, **self.options,
        )  # fmt: skip


def make_layout(
    problem: Problem, observations: Observations | None, scaled: bool, extra: tuple[str, ...] = ()
) -> Layout:
    """Units for a problem: its own (identity), or non-dimensional ones from domain and readings.

    Scaled, each coordinate runs over [-1, 1], each observed field has the readings' middle and
    robust spread, and each unseen one the size that the problem states.
    """
    columns = problem.columns + extra
    offset, scale = [0.0] * len(columns), [1.0] * len(columns)
    if scaled:
        for number, name in enumerate(columns):
            offset[number], scale[number] = _column_units(problem, observations, name)
    ends = np.array(list(problem.coordinates.values()), np.float64)
    centre = ends.mean(axis=1) if scaled else np.zeros(len(ends))
    half = (ends[:, 1] - ends[:, 0]) / 2 if scaled else np.ones(len(ends))
    return Layout(
        tuple(problem.coordinates), columns, tuple(centre.tolist()), tuple(half.tolist()),
        tuple(offset), tuple(scale), tuple(n in problem.space for n in problem.coordinates), scaled,
    )  # fmt: skip


def _column_units(problem: Problem, observations: Observations | None, name: str):
    for unknown in problem.unknown_fields:
        if unknown.name == name:
            return float(unknown.offset), float(unknown.scale)
    if name in problem.scales:
        return 0.0, float(problem.scales[name])
    if observations is not None and name in observations.quantities:
        column = observations.values[:, observations.quantities.index(name)]
        seen = column[np.isfinite(column)]
        # Outliers are what this package is about, so the spread is a robust one.
        low, middle, high = np.quantile(seen, [0.05, 0.5, 0.95]) if len(seen) else (0.0, 0.0, 0.0)
        spread = (high - low) / 2
        largest = max(abs(low), abs(high))
        if spread > 0:
            far = abs(middle) > 3 * spread
            return (float(middle) if far else 0.0), float(spread if far else largest)
        return 0.0, float(largest) if largest > 0 else 1.0
    return 0.0, 1.0


def make_model(
    problem: Problem,
    observations: Observations | None,
    architecture: Architecture,
    seed: int,
    scaled: bool = True,
    extra_columns: tuple[str, ...] = (),
    extras: Mapping[str, float | int] | None = None,
) -> Model:
    """A freshly drawn model of a problem, in float32."""
    layout = make_layout(problem, observations, scaled, extra_columns)
    key = jax.random.key(seed)
    network = architecture.make(key, problem.dimension, len(layout.columns))
    scalars = {s.name: jnp.asarray(s.raw(scaled), jnp.float32) for s in problem.scalars}
    trained = {name: jnp.asarray(v, jnp.float32) for name, v in (extras or {}).items()}
    return Model(network, scalars, trained, layout, problem.scalars)


__all__ = ["Architecture", "Fixed", "Layout", "Model", "Values", "make_layout", "make_model"]
