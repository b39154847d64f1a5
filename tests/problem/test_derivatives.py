"""Names of derivatives, and arithmetic on the values that stand for fields."""

from __future__ import annotations

import itertools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpinn._errors import UserError
from unpinn.problem import Derivative, DerivativeError, FieldValue
from unpinn.problem._derivatives import HIGHEST_ORDER, parse_attribute

XT = ("x", "t")


def field(values=(1.0, 2.0, 3.0), coordinates=XT, asked=None) -> FieldValue:
    """A field `u` of given values whose every derivative is the order times the values."""

    def look_up(derivative: Derivative):
        if asked is not None:
            asked.append(derivative)
        return jnp.asarray(values) * (1 + derivative.order)

    return FieldValue("u", coordinates, look_up)


@pytest.mark.parametrize(
    ("attribute", "coordinates", "orders"),
    [
        ("x", XT, (1, 0)),
        ("tt", XT, (0, 2)),
        ("xxxx", XT, (4, 0)),
        ("xtx", XT, (2, 1)),
        ("x1x2", ("x1", "x2"), (1, 1)),
        ("x2x2x1", ("x1", "x2"), (1, 2)),
        ("x1x10", ("x1", "x10"), (1, 1)),
        ("radiustime", ("radius", "time"), (1, 1)),
        ("T", ("x", "T"), (0, 1)),
        ("y", XT, None),
        ("xq", XT, None),
        ("x1", ("x", "y"), None),
        ("radiu", ("radius",), None),
    ],
)
def test_an_attribute_counts_coordinates(attribute, coordinates, orders):
    assert parse_attribute(attribute, coordinates) == orders


@given(st.lists(st.sampled_from(["x", "y", "t"]), min_size=1, max_size=6))
def test_every_string_of_single_letters_reads_back(letters):
    counts = tuple(letters.count(name) for name in ("x", "y", "t"))
    assert parse_attribute("".join(letters), ("x", "y", "t")) == counts


def test_one_reading_out_of_several_orders_is_not_ambiguous():
    # "xxx" splits as x|xx and xx|x, which is the same derivative, but also as x|x|x.
    assert parse_attribute("ab", ("a", "b", "c")) == (1, 1, 0)
    with pytest.raises(DerivativeError, match=r"more than one way.*u\.d\('x', 2\)"):
        parse_attribute("xxx", ("x", "xx"))


def test_ambiguous_names_are_refused_and_the_call_is_not():
    asked: list[Derivative] = []
    u = field(coordinates=("x", "xx"), asked=asked)
    with pytest.raises(DerivativeError, match="'xx' can be read in more than one way"):
        _ = u.xx
    u.d("xx"), u.d("x", 2)
    assert asked == [Derivative("u", (0, 1)), Derivative("u", (2, 0))]


@pytest.mark.parametrize(
    ("call", "orders"),
    [
        (("radius",), (1, 0)),
        (("radius", 2), (2, 0)),
        (("radius", 2, "t"), (2, 1)),
        (("t", "radius", 3), (3, 1)),
        (("t", "t", "t"), (0, 3)),
        (("t", 2, "radius", "t"), (1, 3)),
    ],
)
def test_calls_spell_derivatives_out(call, orders):
    asked: list[Derivative] = []
    field(coordinates=("radius", "t"), asked=asked).d(*call)
    assert asked == [Derivative("u", orders)]


@pytest.mark.parametrize("call", [(2,), ("radius", 0), ("radius", 2, 2), ("radius", -1), ("r",)])
def test_calls_that_make_no_sense_are_refused(call):
    with pytest.raises(DerivativeError, match=r"u\.d.*the coordinates are radius, t"):
        field(coordinates=("radius", "t")).d(*call)


def test_the_value_and_the_laplacian_are_asked_for_as_such():
    asked: list[Derivative] = []
    u = field(asked=asked)
    _ = u.value, u.laplacian
    assert asked == [Derivative("u", (0, 0)), Derivative("u", "laplacian")]
    assert [derivative.order for derivative in asked] == [0, 2]


@pytest.mark.parametrize(
    ("attribute", "hint"), [("raduis", "u.radius"), ("laplacan", "u.laplacian"), ("q", None)]
)
def test_a_misspelt_derivative_gets_a_suggestion(attribute, hint):
    with pytest.raises(DerivativeError) as caught:
        getattr(field(coordinates=("radius", "t")), attribute)
    told = str(caught.value)
    assert f"u.{attribute} is not a derivative: the coordinates are radius, t" in told
    assert ("did you mean" in told) == (hint is not None)
    assert hint is None or hint in told


def test_a_derivative_error_is_an_attribute_error_for_the_language_and_a_user_error_for_us():
    u = field()
    assert not hasattr(u, "velocity")
    assert issubclass(DerivativeError, UserError)
    assert issubclass(DerivativeError, AttributeError)


ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)
COMPARISON = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
OTHERS = {
    "number": 2.0,
    "integer": 3,
    "NumPy number": np.float64(1.5),
    "NumPy array": np.array([3.0, 2.0, 0.5]),
    "JAX array": jnp.array([3.0, 2.0, 0.5]),
    "field": field((3.0, 2.0, 0.5)),
}


@pytest.mark.parametrize("other", OTHERS, ids=str)
@pytest.mark.parametrize("operation", ARITHMETIC + COMPARISON, ids=lambda o: o.__name__)
def test_a_field_computes_like_its_values_on_either_side(operation, other):
    u, values = field(), np.array([1.0, 2.0, 3.0])
    other = OTHERS[other]
    plain = np.asarray(other.value) if isinstance(other, FieldValue) else other
    for result, expected in (
        (operation(u, other), operation(values, plain)),
        (operation(other, u), operation(plain, values)),
    ):
        assert result.shape == (3,)
        assert not isinstance(result, FieldValue)
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


def test_unary_operations_and_sum():
    u = field((-1.0, 2.0, -3.0))
    np.testing.assert_array_equal(-u, [1.0, -2.0, 3.0])
    np.testing.assert_array_equal(+u, [-1.0, 2.0, -3.0])
    np.testing.assert_array_equal(abs(u), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(sum([u, u.x]), [-3.0, 6.0, -9.0])


def test_a_field_looks_like_an_array_of_its_points():
    u = field()
    assert (u.shape, u.ndim, u.size) == ((3,), 1, 3)
    assert u.dtype == np.float32
    np.testing.assert_array_equal(jnp.asarray(u.value), np.asarray(u))
    assert repr(u) == "<field u(x, t)>"


def test_a_field_is_no_key_and_no_truth():
    with pytest.raises(TypeError, match="unhashable"):
        {field(): 1}
    with pytest.raises(ValueError, match="truth value"):
        bool(field())


def test_derivatives_are_keys():
    everything = [
        Derivative(name, orders)
        for name, orders in itertools.product("uv", [(0, 0), (1, 0), "laplacian"])
    ]
    assert len({*everything, *everything}) == 6
    assert sorted(everything) == sorted(reversed(everything))


def test_a_mapping_from_derivatives_passes_through_compiled_functions():
    values = {Derivative("u", "laplacian"): jnp.ones(2), Derivative("u", (1, 0)): jnp.zeros(2)}
    doubled = jax.jit(lambda values: {key: 2 * value for key, value in values.items()})(values)
    np.testing.assert_array_equal(doubled[Derivative("u", "laplacian")], [2.0, 2.0])
    np.testing.assert_array_equal(doubled[Derivative("u", (1, 0))], [0.0, 0.0])


def test_an_order_beyond_the_range_of_numbers_is_refused_and_the_one_before_is_not():
    asked = FieldValue("u", XT, lambda derivative: derivative)
    assert asked.d("x", HIGHEST_ORDER).order == HIGHEST_ORDER
    with pytest.raises(DerivativeError, match=f"no more than order {HIGHEST_ORDER}"):
        asked.d("x", HIGHEST_ORDER, "t")
    with pytest.raises(DerivativeError, match="order 31"):
        getattr(asked, "x" * 31)
