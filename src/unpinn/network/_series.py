r"""Truncated Taylor series of many points at once.

A `Series` holds, for n points and w neurons, the value, the Taylor coefficients along each of a
plan's directions, and perhaps the laplacian. An architecture written with its operations needs no
other rule for its derivatives, and with a plan of no directions it is the plain network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from unpinn.network._activations import Activation
from unpinn.network._coefficients import Channels, compose, multiply, plus, product, times
from unpinn.network._plan import Plan


class Series:
    """Taylor coefficients of w neurons at n points.

    >>> series = Series.of_points(jnp.array([[3.0]]), Plan(1, ((1,),), (2,)))
    >>> [float(c) for c in (series * series).stack.ravel()]  # (3 + s)^2 = 9 + 6 s + s^2
    [9.0, 6.0, 1.0]
    """

    __slots__ = ("_channels", "_factor", "plan")

    def __init__(self, stack: jax.Array, plan: Plan):
        self._channels: Channels = tuple(channel.T for channel in stack)
        self._factor: jax.Array | None = None
        self.plan = plan

    @classmethod
    def of_channels(cls, channels: Channels, plan: Plan, factor: jax.Array | None = None) -> Series:
        """From channels with neurons first.

        Arguments:
            channels: the value (w, n), then each (w, n), or (w, 1) if it is the same at every
                point, or None if it is zero whatever the weights.
            plan: which channel is what.
            factor: multiplies the neurons of every channel, (w,); not yet done.
        """
        series = cls.__new__(cls)
        series._channels, series._factor, series.plan = tuple(channels), factor, plan
        return series

    @classmethod
    def of_points(cls, points: jax.Array, plan: Plan) -> Series:
        """The coordinates (n, d) themselves, which move at unit speed along each direction."""
        channels: list[Any] = [points.T]
        for direction, order in zip(plan.directions, plan.orders, strict=True):
            channels += [jnp.asarray(direction, points.dtype)[:, None], *[None] * (order - 1)]
        if plan.laplacian is not None:
            channels.append(None)
        return cls.of_channels(tuple(channels), plan)

    @classmethod
    def concatenate(cls, parts: Sequence[Series]) -> Series:
        """The neurons of several series side by side."""
        joined: list[Any] = []
        for rows in zip(*(part.channels for part in parts), strict=True):
            if all(row is None for row in rows):
                joined.append(None)
                continue
            points = max(1 if row is None else row.shape[1] for row in rows)
            filled = [
                jnp.zeros((part.width, points), part.dtype)
                if row is None
                else jnp.broadcast_to(row, (part.width, points))
                for part, row in zip(parts, rows, strict=True)
            ]
            joined.append(jnp.concatenate(filled))
        return cls.of_channels(tuple(joined), parts[0].plan)

    @property
    def channels(self) -> Channels:
        """The channels with neurons first, as `of_channels` takes them."""
        if self._factor is None:
            return self._channels
        column = self._factor[:, None]
        return tuple(times(channel, column) for channel in self._channels)

    @property
    def stack(self) -> jax.Array:
        """All channels as one array, (channels, n, width)."""
        shape = self._channels[0].shape
        full = (
            jnp.zeros(shape, self.dtype) if channel is None else jnp.broadcast_to(channel, shape)
            for channel in self.channels
        )
        return jnp.stack([channel.T for channel in full])

    @property
    def width(self) -> int:
        """How many neurons."""
        return self._channels[0].shape[0]

    @property
    def dtype(self):
        """The type of the numbers."""
        return self._channels[0].dtype

    @property
    def value(self) -> jax.Array:
        """The value channel, (n, width)."""
        return self.channels[0].T

    def linear(self, weight: jax.Array, bias: jax.Array | None = None) -> Series:
        """A linear layer (out, in): a product a channel, the bias (out,) on the value alone."""
        # A factor of the neurons is one of the weight's columns, which are fewer than the points.
        weight = weight if self._factor is None else weight * self._factor
        out = Series.of_channels(multiply(weight, self._channels), self.plan)
        return out if bias is None else out.shift(bias)

    def activate(self, activation: Activation) -> Series:
        """Compose with a nonlinearity."""
        return Series.of_channels(compose(activation, self.plan, self.channels), self.plan)

    def __mul__(self, other: Series) -> Series:
        """The product of two series."""
        return Series.of_channels(product(self.plan, self.channels, other.channels), self.plan)

    def __add__(self, other: Series) -> Series:
        return Series.of_channels(tuple(map(plus, self.channels, other.channels)), self.plan)

    def __sub__(self, other: Series) -> Series:
        negative = (None if channel is None else -channel for channel in other.channels)
        return Series.of_channels(tuple(map(plus, self.channels, negative)), self.plan)

    def scale(self, factor: jax.Array) -> Series:
        """Multiply every channel by a constant: a number, (width,), or (n, width) a point."""
        if factor.ndim == 1:
            factor = factor if self._factor is None else factor * self._factor
            return Series.of_channels(self._channels, self.plan, factor)
        return Series.of_channels(tuple(times(c, factor.T) for c in self.channels), self.plan)

    def shift(self, offset: jax.Array) -> Series:
        """Add a constant to the value: a number, (width,), or (n, width)."""
        value, *others = self.channels
        offset = offset[:, None] if offset.ndim == 1 else offset.T
        return Series.of_channels((value + offset, *others), self.plan)

    def select(self, index) -> Series:
        """Some of the neurons."""
        chosen = tuple(None if channel is None else channel[index] for channel in self.channels)
        return Series.of_channels(chosen, self.plan)

    def derivative(self, orders: tuple[int, ...]) -> jax.Array:
        """One derivative of every neuron, (n, width)."""
        return self._combine(self.plan.recipe(orders)).T

    @property
    def laplacian(self) -> jax.Array:
        """The laplacian channel, (n, width)."""
        return self._combine(((self.plan.channels - 1, 1.0),)).T

    def of_neuron(self, number: int, orders: tuple[int, ...] | str) -> jax.Array:
        """One derivative (or the "laplacian") of one neuron, (n,)."""
        last = ((self.plan.channels - 1, 1.0),)
        recipe = last if isinstance(orders, str) else self.plan.recipe(orders)
        return self._combine(recipe, slice(number, number + 1))[0]

    def _combine(self, recipe, rows: slice = slice(None)) -> jax.Array:
        channels = self.channels
        terms = [
            channels[place][rows] if factor == 1.0 else factor * channels[place][rows]
            for place, factor in recipe
            if channels[place] is not None
        ]
        value = channels[0][rows]
        return jnp.broadcast_to(plus(*terms), value.shape) if terms else jnp.zeros_like(value)
