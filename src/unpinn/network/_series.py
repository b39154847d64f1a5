r"""Truncated Taylor series of many points at once, as one stacked array.

A `Series` holds, for n points and w neurons, the value, the Taylor coefficients along each of a
plan's directions, and perhaps the laplacian, stacked as (channels, n, w). A linear layer is then
one matrix product for all of them. An architecture written with these operations needs no other
rule for its derivatives, and with a plan of no directions it is the plain network.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from unpinn.network._activations import Activation
from unpinn.network._plan import Plan


class Series:
    """Stacked Taylor coefficients, (channels, n, width)."""

    __slots__ = ("plan", "stack")

    def __init__(self, stack: jax.Array, plan: Plan):
        self.stack = stack
        self.plan = plan

    @classmethod
    def of_points(cls, points: jax.Array, plan: Plan) -> Series:
        """The coordinates themselves, which move at unit speed along each direction."""
        rows = [points]
        for direction, order in zip(plan.directions, plan.orders, strict=True):
            step = jnp.broadcast_to(jnp.asarray(direction, points.dtype), points.shape)
            rows += [step] + [jnp.zeros_like(points)] * (order - 1)
        if plan.laplacian is not None:
            rows.append(jnp.zeros_like(points))
        return cls(jnp.stack(rows), plan)

    @property
    def value(self) -> jax.Array:
        """The value channel, (n, width)."""
        return self.stack[0]

    def linear(self, weight: jax.Array, bias: jax.Array | None = None) -> Series:
        """A linear layer: one product for all channels, the bias on the value alone."""
        channels, points, width = self.stack.shape
        product = self.stack.reshape(channels * points, width) @ weight.T
        stack = product.reshape(channels, points, weight.shape[0])
        return Series(stack if bias is None else stack.at[0].add(bias), self.plan)

    def activate(self, activation: Activation) -> Series:
        r"""Compose with a nonlinearity: $(f\circ z)_k = \sum_m f^{(m)}/m!\,[(z-z_0)^m]_k$."""
        plan = self.plan
        highest = max([*plan.orders, 2 if plan.laplacian is not None else 0], default=0)
        f = activation.derivatives(self.stack[0], highest)
        rows = [f[0]]
        for number, order in enumerate(plan.orders):
            z = [self.stack[plan.channel(number, k)] for k in range(1, order + 1)]
            rows += _compose(f, z)
        if plan.laplacian is not None:
            squares = self._gradient_square()
            rows.append(f[1] * self.stack[-1] + f[2] * squares)
        return Series(jnp.stack(rows), plan)

    def __mul__(self, other: Series) -> Series:
        """The product of two series, coefficient by coefficient (Cauchy)."""
        plan, a, b = self.plan, self.stack, other.stack
        rows = [a[0] * b[0]]
        for number, order in enumerate(plan.orders):
            x = [a[0]] + [a[plan.channel(number, k)] for k in range(1, order + 1)]
            y = [b[0]] + [b[plan.channel(number, k)] for k in range(1, order + 1)]
            rows += [sum(x[i] * y[k - i] for i in range(k + 1)) for k in range(1, order + 1)]
        if plan.laplacian is not None:
            cross = sum(
                weight * a[c] * b[c] for c, weight in self._first_channels()
            )
            rows.append(a[-1] * b[0] + a[0] * b[-1] + 2.0 * cross)
        return Series(jnp.stack(rows), plan)

    def __add__(self, other: Series) -> Series:
        return Series(self.stack + other.stack, self.plan)

    def __sub__(self, other: Series) -> Series:
        return Series(self.stack - other.stack, self.plan)

    def scale(self, factor: jax.Array) -> Series:
        """Multiply every channel by a constant: (width,), or (n, width) for one a point."""
        return Series(self.stack * factor, self.plan)

    def shift(self, offset: jax.Array) -> Series:
        """Add a constant to the value."""
        return Series(self.stack.at[0].add(offset), self.plan)

    def select(self, index) -> Series:
        """Some of the neurons."""
        return Series(self.stack[:, :, index], self.plan)

    def derivative(self, orders: tuple[int, ...]) -> jax.Array:
        """One derivative of every neuron, (n, width)."""
        return sum(factor * self.stack[c] for c, factor in self.plan.recipe(orders))

    @property
    def laplacian(self) -> jax.Array:
        """The laplacian channel, (n, width)."""
        return self.stack[-1]

    def _first_channels(self) -> list[tuple[int, float]]:
        plan = self.plan
        pairs = []
        for axis, weight in enumerate(plan.laplacian or ()):
            if weight != 0.0:
                unit = tuple(int(k == axis) for k in range(plan.dimension))
                pairs.append((plan.channel(plan.directions.index(unit), 1), weight))
        return pairs

    def _gradient_square(self) -> jax.Array:
        return sum(weight * self.stack[c] ** 2 for c, weight in self._first_channels())


def _compose(f: list[jax.Array], z: list[jax.Array]) -> list[jax.Array]:
    """Taylor coefficients 1..k of f(z(t)) from those of z and the derivatives of f at z_0."""
    order = len(z)
    power: list[jax.Array | None] = list(z)  # coefficients 1..k of (z - z_0)^m, m = 1 first
    out = [f[1] * coefficient for coefficient in z]
    factorial = 1.0
    for m in range(2, order + 1):
        factorial *= m
        raised: list[jax.Array | None] = [None] * order
        for k in range(m, order + 1):
            terms = [
                power[i - 1] * z[k - i - 1] for i in range(m - 1, k) if power[i - 1] is not None
            ]
            raised[k - 1] = sum(terms[1:], terms[0])
        power = raised
        for k in range(m, order + 1):
            out[k - 1] = out[k - 1] + (f[m] / factorial) * power[k - 1]
    return out
