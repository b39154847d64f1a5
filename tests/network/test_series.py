"""An operation on series is the same operation on functions, differentiated; so are gradients."""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn.network import ACTIVATIONS, Activation, Plan, Series, propagate_by_jvp

PLANS = {
    "value": Plan(2),
    "beam": Plan(2, ((0, 1), (1, 0)), (2, 4)),
    "oblique": Plan(2, ((1, 0), (1, 1), (1, -2)), (1, 2, 3)),
    "laplacian in x": Plan(2, ((0, 1), (1, 0)), (2, 1), (1.0, 0.0)),
    "laplacian and orders": Plan(2, ((0, 1), (1, 0), (1, 1)), (1, 4, 2), (0.5, 1.0)),
}
KINDS = ("float32", "float64")
ROUNDING = {"float32": 1.2e-7, "float64": 2.3e-16}
# The same functions without the rule for f' = a + b f + c f^2.
SLOW = Activation("slow tanh", ACTIVATIONS["tanh"].derivatives)

GENERATOR = np.random.default_rng(5)
POINTS = GENERATOR.uniform(-1, 1, (5, 2))
FIRST, SECOND, THIRD = (GENERATOR.normal(size=s) for s in ((4, 2), (4, 2), (3, 4)))
BIAS, ROW, EACH = (GENERATOR.normal(size=s) for s in ((4,), (4,), (5, 4)))

every_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
every_kind = pytest.mark.parametrize("kind", KINDS)


def inner(x, weight):
    return jnp.sin(x @ weight.T)


def arrays(kind, *constants):
    return [jnp.asarray(constant, kind) for constant in constants]


# Each: what it does to two series of points' functions, and to the functions' values.
OPERATIONS = {
    "linear": (lambda a, b, c: a.linear(c[2], c[3][:3]), lambda a, b, c: a @ c[2].T + c[3][:3]),
    "linear, no bias": (lambda a, b, c: a.linear(c[2]), lambda a, b, c: a @ c[2].T),
    "product": (lambda a, b, c: a * b, lambda a, b, c: a * b),
    "square": (lambda a, b, c: a * a, lambda a, b, c: a * a),
    "sum": (lambda a, b, c: a + b, lambda a, b, c: a + b),
    "difference": (lambda a, b, c: a - b, lambda a, b, c: a - b),
    "scale": (lambda a, b, c: a.scale(jnp.asarray(3.0)), lambda a, b, c: 3.0 * a),
    "scale neurons": (lambda a, b, c: a.scale(c[4]), lambda a, b, c: a * c[4]),
    "scale points": (lambda a, b, c: a.scale(c[5]), lambda a, b, c: a * c[5]),
    "scale twice, then linear": (
        lambda a, b, c: a.scale(c[4]).scale(c[3]).linear(c[2]),
        lambda a, b, c: (a * c[4] * c[3]) @ c[2].T,
    ),
    "scale, then product": (lambda a, b, c: a.scale(c[4]) * b, lambda a, b, c: a * c[4] * b),
    "scale, then sum": (lambda a, b, c: a.scale(c[4]) + b, lambda a, b, c: a * c[4] + b),
    "scale, then shift": (
        lambda a, b, c: a.scale(c[4]).shift(c[3]),
        lambda a, b, c: a * c[4] + c[3],
    ),
    "shift by a number": (lambda a, b, c: a.shift(jnp.asarray(2.0)), lambda a, b, c: a + 2.0),
    "shift points": (lambda a, b, c: a.shift(c[5]), lambda a, b, c: a + c[5]),
    "select": (lambda a, b, c: a.select(np.array([2, 0])), lambda a, b, c: a[:, [2, 0]]),
    "concatenate": (
        lambda a, b, c: Series.concatenate([a, b.scale(c[4])]),
        lambda a, b, c: jnp.concatenate([a, b * c[4]], axis=1),
    ),
    **{
        f.name: (lambda a, b, c, f=f: a.activate(f), lambda a, b, c, f=f: f(a))
        for f in [*ACTIVATIONS.values(), SLOW]
    },
    "scale, then activate": (
        lambda a, b, c: a.scale(c[4]).activate(SLOW),
        lambda a, b, c: jnp.tanh(a * c[4]),
    ),
}


@lru_cache
def results(plan: Plan, kind: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For every operation, its stack by series and by nested differentiation."""
    with precision.scope(kind):
        c = arrays(kind, FIRST, SECOND, THIRD, BIAS, ROW, EACH)

        @jax.jit
        def run(points):
            start = Series.of_points(points, plan)
            sine = ACTIVATIONS["sin"]
            a, b = (start.linear(weight).activate(sine) for weight in c[:2])
            found = {}
            for name, (series, function) in OPERATIONS.items():

                def whole(x, function=function):
                    return function(inner(x, c[0]), inner(x, c[1]), c)

                expected = propagate_by_jvp(whole, points, plan)
                found[name] = series(a, b, c).stack, expected.stack
            return found

        return jax.tree.map(np.asarray, run(jnp.asarray(POINTS, kind)))


def assert_close(found, expected, kind, factor=100.0):
    assert found.dtype == expected.dtype == kind
    size = np.abs(expected).max(axis=(-2, -1), keepdims=True)
    assert np.isfinite(found).all()
    assert (np.abs(found - expected) <= factor * ROUNDING[kind] * (size + 1e-3)).all()


@every_kind
@every_plan
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_equals_its_function_differentiated(plan, kind, name):
    assert_close(*results(plan, kind)[name], kind)


@every_plan
def test_coordinates_move_along_their_directions(plan):
    series = Series.of_points(jnp.asarray(POINTS), plan)
    np.testing.assert_array_equal(
        series.stack, propagate_by_jvp(lambda x: x, jnp.asarray(POINTS), plan).stack
    )


@every_plan
def test_a_series_can_be_rebuilt_from_its_stack(plan):
    series = Series.of_points(jnp.asarray(POINTS, "float32"), plan).linear(jnp.asarray(FIRST))
    again = Series(series.stack, plan)
    np.testing.assert_array_equal(again.stack, series.stack)
    np.testing.assert_array_equal(again.activate(SLOW).stack, series.activate(SLOW).stack)
    assert (again.width, again.dtype) == (series.width, series.dtype) == (4, "float32")


def test_derivatives_are_read_alike_for_all_neurons_and_for_one():
    plan = PLANS["laplacian and orders"]
    series = Series.of_points(jnp.asarray(POINTS), plan).linear(jnp.asarray(FIRST)).activate(SLOW)
    for orders in ((0, 0), (1, 0), (4, 0), (0, 1)):
        whole = series.derivative(orders)
        assert whole.shape == (5, 4)
        np.testing.assert_array_equal(series.of_neuron(2, orders), whole[:, 2])
    np.testing.assert_array_equal(series.of_neuron(1, "laplacian"), series.laplacian[:, 1])
    np.testing.assert_array_equal(series.value, series.stack[0])


# -- gradients in the weights, which run through the operations' own rules --------------------


def score(weights, points, plan, activation, by_series: bool):
    """A number that depends on every channel of a small network."""
    first, second, third, bias = weights
    if by_series:
        series = Series.of_points(points, plan).linear(first, bias).activate(activation)
        stack = series.scale(bias).linear(second, bias).activate(activation).linear(third).stack
    else:

        def network(x):
            hidden = activation(x @ first.T + bias) * bias
            return activation(hidden @ second.T + bias) @ third.T

        stack = propagate_by_jvp(network, points, plan).stack
    return jnp.sum(jnp.sin(stack) ** 2)


def weights_of(kind):
    wide = np.random.default_rng(6).normal(size=(6, 4)) / 2
    return tuple(arrays(kind, FIRST, (wide.T @ wide) / 4, THIRD / 2, BIAS))


@every_kind
@every_plan
@pytest.mark.parametrize(
    "activation", [ACTIVATIONS["tanh"], ACTIVATIONS["swish"]], ids=lambda f: f.name
)
def test_gradients_equal_those_through_nested_derivatives(plan, kind, activation):
    with precision.scope(kind):
        points, weights = jnp.asarray(POINTS, kind), weights_of(kind)
        found, expected = (
            jax.jit(jax.grad(lambda w, way=way: score(w, points, plan, activation, way)))(weights)
            for way in (True, False)
        )
        for a, b in zip(found, expected, strict=True):
            assert_close(np.atleast_2d(a), np.atleast_2d(b), kind, 1000.0)


@pytest.mark.parametrize("outputs", [1, 6], ids=["few outputs", "many outputs"])
def test_curvature_is_right_both_ways(outputs):
    plan, tanh = PLANS["laplacian in x"], ACTIVATIONS["tanh"]
    with precision.scope("float64"):
        points, weights = jnp.asarray(POINTS), weights_of("float64")
        weights = (*weights[:2], jnp.resize(weights[2], (outputs, 4)), weights[3])
        direction = jax.tree.map(
            lambda w: jnp.cos(1 + jnp.arange(w.size)).reshape(w.shape), weights
        )
        fast, slow = (lambda w, way=way: score(w, points, plan, tanh, way) for way in (True, False))
        rise = lambda f: lambda w: jax.jvp(f, (w,), (direction,))[1]  # noqa: E731
        forward_over_reverse = jax.jit(lambda w: jax.jvp(jax.grad(fast), (w,), (direction,))[1])
        reverse_over_forward = jax.jit(jax.grad(rise(fast)))
        expected = jax.jit(jax.grad(rise(slow)))(weights)
        for way in (forward_over_reverse, reverse_over_forward):
            for a, b in zip(way(weights), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_many_networks_at_once_equal_one_after_another():
    plan, tanh = PLANS["laplacian in x"], ACTIVATIONS["tanh"]
    with precision.scope("float64"):
        points, weights = jnp.asarray(POINTS), weights_of("float64")
        gradient = jax.grad(lambda w: score(w, points, plan, tanh, True))
        many = jax.tree.map(lambda w: jnp.stack([w, 2 * w, -w]), weights)
        together = jax.jit(jax.vmap(gradient))(many)
        for number, factor in enumerate((1, 2, -1)):
            alone = jax.jit(gradient)(jax.tree.map(lambda w, f=factor: f * w, weights))
            for a, b in zip(together, alone, strict=True):
                np.testing.assert_allclose(a[number], b, rtol=1e-11, atol=1e-11)


def test_a_silenced_neuron_neither_speaks_nor_learns():
    plan, tanh = PLANS["beam"], ACTIVATIONS["tanh"]
    mask, points = jnp.array([1.0, 0.0, 1.0, 1.0]), jnp.asarray(POINTS)
    keep = np.array([0, 2, 3])

    def output(weights):
        first, third = weights
        return Series.of_points(points, plan).linear(first).activate(tanh).scale(mask).linear(third)

    whole = tuple(arrays("float32", FIRST, THIRD))
    small = Series.of_points(points, plan).linear(whole[0][keep]).activate(tanh)
    np.testing.assert_allclose(
        output(whole).stack, small.linear(whole[1][:, keep]).stack, rtol=1e-5, atol=1e-6
    )
    first, third = jax.grad(lambda weights: jnp.sum(output(weights).stack ** 2))(whole)
    assert not np.any(first[1]) and not np.any(third[:, 1])
    assert np.all(np.any(first[keep], axis=1)) and np.all(np.any(third[:, keep], axis=0))
