r"""Activation functions with their derivatives, which the Taylor rule composes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from unpinn._errors import UserError

Derivatives = Callable[[jax.Array, int], list[jax.Array]]


@dataclass(frozen=True)
class Activation:
    """A nonlinearity and its derivatives.

    Arguments:
        name: its name in configurations.
        derivatives: from z and an order k, the list [f(z), f'(z), ..., f^(k)(z)].
        quadratic: (a, b, c) where f' = a + b f + c f^2, which makes all derivatives cheap.
    """

    name: str
    derivatives: Derivatives
    quadratic: tuple[float, float, float] | None = None

    def __call__(self, z: jax.Array) -> jax.Array:
        """The function itself."""
        return self.derivatives(z, 0)[0]


def _tanh(z: jax.Array, order: int) -> list[jax.Array]:
    # The derivatives of tanh are polynomials in y = tanh z: P_0 = y, P_{k+1} = P_k' (1 - y^2).
    y = jnp.tanh(z)
    out = [y]
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(order):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([1.0, 0.0, -1.0])
        out.append(_horner(polynomial.coef, y))
    return out


def _horner(coefficients: np.ndarray, y: jax.Array) -> jax.Array:
    """Evaluate a polynomial that is even or odd by Horner's rule in y^2."""
    odd = int(np.flatnonzero(coefficients)[0] % 2)
    square, total = y * y, jnp.zeros_like(y)
    for coefficient in coefficients[odd::2][::-1]:
        total = total * square + float(coefficient)
    return total * y if odd else total


def _sin(z: jax.Array, order: int) -> list[jax.Array]:
    if order == 0:
        return [jnp.sin(z)]
    sine, cosine = jnp.sin(z), jnp.cos(z)
    cycle = [sine, cosine, -sine, -cosine]
    return [cycle[k % 4] for k in range(order + 1)]


def elementwise(function: Callable[[jax.Array], jax.Array]) -> Derivatives:
    """Derivatives of any elementwise function, by nested forward differentiation."""

    def derivatives(z: jax.Array, order: int) -> list[jax.Array]:
        functions = [function]
        for _ in range(order):
            functions.append(_derivative(functions[-1]))
        return [f(z) for f in functions]

    return derivatives


def _derivative(function):
    return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]


ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation("tanh", _tanh, (1.0, 0.0, -1.0)),
        Activation("sin", _sin),
        Activation("swish", elementwise(jax.nn.silu)),
        Activation("gelu", elementwise(lambda z: jax.nn.gelu(z, approximate=True))),
        Activation("softplus", elementwise(jax.nn.softplus)),
    )
}


def activation(name: str) -> Activation:
    """The activation of that name.

    >>> activation("tanh").name
    'tanh'
    """
    if name not in ACTIVATIONS:
        raise UserError(f"activation {name!r} is not known; choose one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]
