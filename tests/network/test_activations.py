"""Activations: each one's derivatives are its derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn._errors import UserError
from unpinn.network import ACTIVATIONS, activation

VALUES = np.linspace(-3, 3, 13)
KNOWN = {
    "tanh": np.tanh,
    "sin": np.sin,
    "swish": lambda z: z / (1 + np.exp(-z)),
    "softplus": lambda z: np.log1p(np.exp(z)),
    "gelu": lambda z: z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))) / 2,
}


def test_every_activation_has_its_formula():
    assert KNOWN.keys() == ACTIVATIONS.keys()


@pytest.mark.parametrize("name", KNOWN)
def test_the_function_itself(name):
    with precision.scope("float64"):
        found = activation(name)(jnp.asarray(VALUES))
    np.testing.assert_allclose(found, KNOWN[name](VALUES), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", KNOWN)
def test_derivatives_are_those_of_automatic_differentiation(name):
    function = activation(name)

    @jax.jit
    def both(z):
        towers = [lambda z: function(z)]
        for _ in range(5):
            towers.append(jax.grad(towers[-1]))
        return function.derivatives(z, 5), [jax.vmap(tower)(z) for tower in towers]

    with precision.scope("float64"):
        found, expected = both(jnp.asarray(VALUES))
    assert len(found) == 6
    for order, (one, other) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11, err_msg=f"order {order}")


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_the_precision_is_kept(name, kind):
    with precision.scope(kind):
        values = activation(name).derivatives(jnp.zeros((2, 3), kind), 4)
    assert [(value.shape, value.dtype.name) for value in values] == [((2, 3), kind)] * 5


@pytest.mark.parametrize("name", KNOWN)
def test_saturation_is_finite(name):
    values = jax.jit(lambda z: activation(name).derivatives(z, 4))(jnp.array([-50.0, 50.0]))
    assert np.isfinite(values).all()


def test_an_unknown_activation_is_told():
    with pytest.raises(UserError, match="activation 'relu' is not known; choose one of tanh, sin"):
        activation("relu")
