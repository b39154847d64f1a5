"""Functions of fields, unknowns and coordinates: what they are given, and what they may not do."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.problem import Derivative, DerivativeError, Symbols
from unpinn.problem._expression import trace

SYMBOLS = Symbols(("x", "t"), ("u", "pressure", "a"), ("speed", "k"))
POINTS = 4


def read(function, what="equation", name="balance"):
    return trace(what, name, function, SYMBOLS)


def evaluate(function) -> np.ndarray:
    """Evaluate with u = 1, u_x = 10, u_tt = 200, pressure = 2, speed = 3, k = 4, x and t given."""
    expression = read(function)
    ones = jnp.ones(POINTS)
    values = {
        Derivative("u", (0, 0)): ones,
        Derivative("u", (1, 0)): 10 * ones,
        Derivative("u", (0, 2)): 200 * ones,
        Derivative("pressure", (0, 0)): 2 * ones,
    }
    scalars = {"speed": jnp.array(3.0), "k": jnp.array(4.0)}
    coordinates = {"x": jnp.arange(float(POINTS)), "t": 100 * ones}
    result = expression(values, scalars, coordinates)
    assert result.shape == (POINTS, expression.components)
    return np.asarray(result)


# -- what a function is given -----------------------------------------------------------------


def test_names_select_in_any_order():
    one = evaluate(lambda u, speed, x: u.tt + speed * u.x + x)
    other = evaluate(lambda x, speed, u: u.tt + speed * u.x + x)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one[:, 0], 230 + np.arange(POINTS))


def test_only_what_is_read_is_asked_for():
    expression = read(lambda u, pressure, speed: u.tt + speed * u.laplacian + 0 * u.x)
    assert expression.arguments == ("u", "pressure", "speed")
    assert expression.derivatives == {
        Derivative("u", (0, 2)),
        Derivative("u", "laplacian"),
        Derivative("u", (1, 0)),
    }


def test_a_default_argument_is_a_constant():
    np.testing.assert_array_equal(evaluate(lambda u, factor=5.0: factor * u), 5.0)
    source = lambda x: 2 * x  # noqa: E731
    np.testing.assert_array_equal(
        evaluate(lambda u, x, f=source: u + f(x))[:, 0], 1 + 2 * np.arange(POINTS)
    )


def test_a_constant_may_stand_before_a_name():
    np.testing.assert_array_equal(evaluate(lambda factor=5.0, u=None: factor * u), 5.0)


def test_a_name_of_the_problem_is_selected_even_with_a_default():
    np.testing.assert_array_equal(evaluate(lambda u, k=99.0: k * u), 4.0)


def test_keyword_only_arguments_select_too():
    def residual(u, *, speed, factor=2.0):
        return factor * speed * u

    np.testing.assert_array_equal(evaluate(residual), 6.0)


def test_partials_methods_and_wrapped_functions():
    def residual(factor, u, speed):
        return factor * u * speed

    class Law:
        def residual(self, u, k):
            return k * u

    @functools.wraps(residual)
    def wrapped(*arguments, **names):
        return residual(*arguments, **names)

    np.testing.assert_array_equal(evaluate(functools.partial(residual, 7.0)), 21.0)
    np.testing.assert_array_equal(evaluate(Law().residual), 4.0)
    np.testing.assert_array_equal(evaluate(functools.partial(wrapped, factor=2.0)), 6.0)


def test_arrays_of_numpy_mix_with_fields():
    twos = np.full(POINTS, 2.0)
    expression = read(lambda u, two=np.float64(2.0): two * u + u * two)  # noqa: B008
    assert expression.components == 1
    np.testing.assert_array_equal(
        expression({Derivative("u", (0, 0)): jnp.asarray(twos)}, {}, {})[:, 0], 8.0
    )


def test_jax_numpy_and_conditions_in_it():
    np.testing.assert_array_equal(
        evaluate(lambda u, x: jnp.where(x > 1, jnp.exp(0 * u.value), -u.value))[:, 0],
        [-1, -1, 1, 1],
    )


# -- what it gives ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "components"),
    [
        (lambda u: u, 1),
        (lambda u: u.x, 1),
        (lambda u: (u.x, u), 2),
        (lambda u, pressure, x: [u, pressure, x], 3),
        (lambda u: jnp.stack([u.x, u.value, u.tt], axis=1), 3),
        (lambda u: (jnp.stack([u.x, u.value], axis=1), u.tt), 3),
        (lambda x: x, 1),
        (lambda u: (u.x > 0) * 1, 1),
    ],
)
def test_components_are_counted(function, components):
    assert read(function).components == components
    assert evaluate(function).shape == (POINTS, components)


def test_components_keep_their_order():
    np.testing.assert_array_equal(
        evaluate(lambda u, pressure: (u.tt, pressure, u.x)), [[200.0, 2.0, 10.0]] * POINTS
    )


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda u: jnp.mean(u.x), "a single number"),
        (lambda u: 0.0, "a single number"),
        (lambda u: (u.x, 1.0), "a single number"),
        (lambda speed: speed, "a single number"),
        (lambda u: jnp.stack([u.x, u.tt]), "shape (2, 7)"),
        (lambda u: u.x[:3], "shape (3,)"),
        (lambda u: u.x[:, None, None], "shape (7, 1, 1)"),
        (lambda u: None, "None"),
        (lambda u: "u.x", "'u.x'"),
    ],
)
def test_a_residual_of_another_shape_is_refused(function, got):
    with pytest.raises(UserError) as caught:
        read(function)
    told = str(caught.value)
    assert "equation 'balance'" in told
    assert "must give one value a point" in told
    assert got in told


def test_a_residual_of_nothing_is_refused():
    with pytest.raises(UserError, match="equation 'balance' gives nothing"):
        read(lambda u: ())


# -- what it may not do -----------------------------------------------------------------------


def test_a_misspelt_argument_is_named_with_a_suggestion():
    with pytest.raises(UserError) as caught:
        read(lambda u, sped: sped * u.x)
    told = str(caught.value)
    assert "equation 'balance' has an argument 'sped'" in told
    assert "those are u, pressure, a, speed, k, x, t" in told
    assert "did you mean 'speed'?" in told


def test_an_argument_like_nothing_gets_no_suggestion():
    with pytest.raises(UserError, match="argument 'zzz'") as caught:
        read(lambda zzz: zzz)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("function", [lambda *u: u[0], lambda **u: u["u"]])
def test_starred_arguments_select_nothing(function):
    # A starred argument called `u` would be mistaken for the field otherwise.
    with pytest.raises(UserError, match=r"equation 'balance' takes \*+u, which selects nothing"):
        read(function)


def test_a_misspelt_derivative_names_equation_and_field():
    with pytest.raises(DerivativeError, match=r"equation 'balance': u\.xz is not a derivative"):
        read(lambda u: u.xz)


@pytest.mark.parametrize(
    ("function", "attribute", "culprit"),
    [
        (lambda u, speed: speed.x * u, "x", "speed"),
        (lambda u, t: u * t.xx, "xx", "t"),
        (lambda u: u.x.t, "t", "u.value"),
    ],
)
def test_only_fields_have_derivatives(function, attribute, culprit):
    with pytest.raises(UserError) as caught:
        read(function)
    told = str(caught.value)
    assert f"equation 'balance' asks for .{attribute} of something" in told
    assert culprit in told
    assert "declared as a Field" in told


def root(value):
    return value if value > 0 else -value


@pytest.mark.parametrize(
    "function",
    [
        lambda u: np.sin(u),
        lambda u: np.sin(u.value),
        lambda u: np.exp(u.x),
        lambda u: math.sin(u),
        lambda u: math.sin(u.x),
        lambda u, speed: u * math.exp(speed),
        lambda u, speed: u * float(speed),
        lambda u: root(u),
        lambda u: root(u.x),
        lambda u, speed: u * root(speed),
        lambda u: u.x if u else u.tt,
        lambda u: np.asarray(u),
        lambda u: u.x.item(),
    ],
)
def test_numpy_math_and_python_conditions_are_explained(function):
    with pytest.raises(UserError) as caught:
        read(function)
    assert "equation 'balance' uses NumPy, math or a Python condition" in str(caught.value)
    assert "jnp.sin, jnp.where" in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [lambda u: jnp.sin(u), lambda u: jnp.where(u > 0, u, 0.0), lambda u: jax.nn.relu(u)],
)
def test_handing_a_field_itself_to_jax_is_explained(function):
    with pytest.raises(UserError, match=r"hands a field itself.*jnp\.sin\(u\.value\)"):
        read(function)


def test_any_other_failure_names_the_equation_and_the_error():
    with pytest.raises(UserError, match="equation 'balance' raised ZeroDivisionError") as caught:
        read(lambda u: u * (1 / 0))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("what", ["equation", "condition", "measurement"])
def test_the_sentence_says_what_the_function_is(what):
    with pytest.raises(UserError, match=f"^{what} 'edge' "):
        read(lambda zzz: zzz, what, "edge")


def test_a_builtin_without_signature_is_refused():
    with pytest.raises(UserError, match="whose arguments Python cannot tell"):
        read(max)


def test_tracing_computes_nothing():
    calls = []

    def residual(u, x):
        calls.append(x)
        return u.x * x

    read(residual)
    assert len(calls) == 1
    assert isinstance(calls[0], jax.core.Tracer)
