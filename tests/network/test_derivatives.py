"""The derivative law: Taylor propagation, nested differentiation and finite differences agree."""

from __future__ import annotations

import functools
import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpinn import precision
from unpinn.network import (
    ARCHITECTURES,
    Fixed,
    Layout,
    Linear,
    Model,
    Network,
    Plan,
    Series,
    make_plan,
    propagate_by_jvp,
)
from unpinn.problem import Derivative

ORDERS = [o for o in itertools.product(range(5), repeat=2) if sum(o) <= 4]
WANTED = frozenset(Derivative(name, orders) for name in "uv" for orders in ORDERS)
LAPLACIANS = frozenset(Derivative(name, "laplacian") for name in "uv")
ROUNDING = 1.2e-7


def up_to(order: int) -> frozenset[Derivative]:
    return frozenset(d for d in WANTED if d.order <= order)


every_architecture = pytest.mark.parametrize("kind", ARCHITECTURES)


def layout(centre=(0.0, 0.0), half=(1.0, 1.0), offset=(0.0, 0.0), scale=(1.0, 1.0)) -> Layout:
    return Layout(("x", "t"), ("u", "v"), centre, half, offset, scale, (True, True), True)


def points_of(layout: Layout, count=5, seed=1) -> np.ndarray:
    """Points in the domain that float32 holds exactly, in float64."""
    inner = np.random.default_rng(seed).uniform(-0.9, 0.9, (count, len(layout.half)))
    return (
        (np.array(layout.centre) + np.array(layout.half) * inner).astype(np.float32).astype(float)
    )


def derivatives(model: Model, points, wanted, kind: str) -> dict[Derivative, np.ndarray]:
    with precision.scope(kind):
        model = precision.cast(model, kind)
        values = taylor(model, jnp.asarray(points, kind), wanted)
        assert all(value.dtype == kind for value in values.values())
        return {derivative: np.asarray(value) for derivative, value in values.items()}


@eqx.filter_jit
def taylor(model, points, wanted):
    return model.derivatives(points, wanted)


def reference(model: Model, points, order: int) -> dict[Derivative, np.ndarray]:
    """The same by nested jvp of the network in the user's units, in float64."""
    layout = model.layout
    with precision.scope("float64"):
        network = precision.cast(model.network, "float64")
        units = (layout.centre, layout.half, layout.offset, layout.scale)
        tensors = towers(network, tuple(map(jnp.array, units)), jnp.asarray(points), order)
    values = {}
    for total, tensor in enumerate(map(np.asarray, tensors)):
        for orders in itertools.product(range(total + 1), repeat=points.shape[1]):
            if sum(orders) == total:
                axes = [axis for axis, count in enumerate(orders) for _ in range(count)]
                for number, name in enumerate(layout.columns):
                    values[Derivative(name, orders)] = tensor[(slice(None), number, *axes)]
    for name in layout.columns if order >= 2 else ():
        squares = 2 * np.eye(points.shape[1], dtype=int)[list(layout.space)]
        pure = [values[Derivative(name, tuple(orders))] for orders in squares.tolist()]
        values[Derivative(name, "laplacian")] = sum(pure)
    return values


@eqx.filter_jit
def towers(network, units, points, order):
    centre, half, offset, scale = units
    every = [lambda point: network(((point - centre) / half)[None])[0] * scale + offset]
    for _ in range(order):
        every.append(jax.jacfwd(every[-1]))
    return [jax.vmap(function)(points) for function in every]


def assert_agree(found, expected, tolerance) -> None:
    """Every derivative agrees within a tolerance (perhaps by order) times its own size."""
    for derivative, value in found.items():
        size = np.abs(expected[derivative]).max()
        allowed = tolerance(derivative.order) if callable(tolerance) else tolerance
        # Numbers smaller than the smallest normal one are flushed to zero.
        error = np.abs(value - expected[derivative]).max() - np.finfo(value.dtype).tiny
        assert np.isfinite(value).all()
        assert error <= allowed * size, f"{derivative} is off by {error / size:.1e} of its size"


@pytest.fixture(scope="module")
def case(draw):
    """A model, points, and all its derivatives by nested differentiation."""

    @functools.cache
    def case(kind, activation="tanh", units=None, order=4, depth=2):
        units = units or layout()
        network = draw(kind, width=5, depth=depth, activation=activation)
        model = Model(network, {}, {}, units, ())
        points = points_of(units)
        return model, points, reference(model, points, order)

    return case


# -- orders one to four, and mixed ones -------------------------------------------------------


@every_architecture
def test_taylor_equals_nested_jvp_in_float64(case, kind):
    model, points, expected = case(kind)
    assert_agree(derivatives(model, points, WANTED | LAPLACIANS, "float64"), expected, 1e-12)


@every_architecture
def test_taylor_equals_nested_jvp_in_float32(case, kind):
    model, points, expected = case(kind)
    found = derivatives(model, points, WANTED | LAPLACIANS, "float32")
    # Each order cancels more; what is left must be rounding still.
    assert_agree(found, expected, lambda order: 20 * ROUNDING * 4**order)


@pytest.mark.parametrize("activation", ["sin", "swish", "gelu", "softplus"])
def test_every_activation(case, activation):
    model, points, expected = case("mlp", activation, order=3)
    wanted = up_to(3) | LAPLACIANS
    assert_agree(derivatives(model, points, wanted, "float64"), expected, 1e-12)


@every_architecture
def test_taylor_equals_finite_differences(case, kind):
    model, points, _ = case(kind)
    offsets = np.arange(-5, 6)
    step = 0.04
    # Row k of the inverse Vandermonde matrix differentiates k times, exactly to degree ten.
    rules = np.linalg.inv(np.vander(offsets * step, increasing=True))[:5]
    rules *= np.array([[math.factorial(k)] for k in range(5)])
    shifts = step * np.array(list(itertools.product(offsets, repeat=2)))
    with precision.scope("float64"):
        wide = precision.cast(model, "float64")
        samples = wide.predict(jnp.asarray((points[:, None] + shifts).reshape(-1, 2)))
        samples = np.asarray(samples).reshape(len(points), len(offsets), len(offsets), 2)
    expected = {
        Derivative(name, (a, b)): np.einsum("i,j,nij->n", rules[a], rules[b], samples[..., number])
        for a, b in ORDERS
        for number, name in enumerate("uv")
    }
    found = derivatives(model, points, WANTED | LAPLACIANS, "float64")
    assert_agree({derivative: found[derivative] for derivative in WANTED}, expected, 2e-5)


def test_mixed_derivatives_in_three_coordinates(draw):
    units = Layout(
        ("x", "y", "z"), ("u",), (0.0,) * 3, (1.0,) * 3, (0.0,), (1.0,), (True,) * 3, True
    )
    model = Model(draw("mlp", inputs=3, outputs=1, width=5, depth=2), {}, {}, units, ())
    points = points_of(units)
    mixed = [(1, 1, 1), (2, 1, 1), (0, 2, 2), (3, 0, 1), (1, 0, 1)]
    wanted = frozenset(Derivative("u", orders) for orders in mixed)
    expected = reference(model, points, 4)
    assert_agree(derivatives(model, points, wanted, "float64"), expected, 1e-12)


@pytest.mark.parametrize("orders", [(6, 0), (3, 3), (2, 5)])
def test_higher_orders_equal_the_formula_of_one_layer(draw, orders):
    units = layout()
    model = Model(draw("mlp", depth=1), {}, {}, units, ())
    points = points_of(units)
    found = derivatives(model, points, frozenset({Derivative("u", orders)}), "float64")
    # u = sum of a tanh(w x + v t + b) has u_(j,k) = sum of a w^j v^k tanh^(j+k)(...), and the
    # derivatives of tanh are polynomials in tanh.
    weight, bias = (np.asarray(a, np.float64) for a in jax.tree.leaves(model.network.hidden[0]))
    outer = np.asarray(model.network.output.weight[0], np.float64)
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(sum(orders)):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([1.0, 0.0, -1.0])
    inner = polynomial(np.tanh(points @ weight.T + bias))
    expected = inner @ (outer * weight[:, 0] ** orders[0] * weight[:, 1] ** orders[1])
    assert_agree(found, {Derivative("u", orders): expected}, 1e-11)


# -- plans ------------------------------------------------------------------------------------


@settings(max_examples=5)
@given(wanted=st.sets(st.sampled_from(sorted(WANTED | LAPLACIANS, key=repr)), min_size=1))
def test_what_else_is_asked_for_changes_nothing(case, wanted):
    model, points, expected = case("mlp")
    found = derivatives(model, points, frozenset(wanted), "float64")
    assert set(found) == wanted
    assert_agree(found, expected, 1e-12)


@every_architecture
def test_the_laplacian_is_the_sum_of_its_parts(case, kind):
    model, points, _ = case(kind)
    parts = frozenset({Derivative("u", (2, 0)), Derivative("u", (0, 2))})
    laplacian = Derivative("u", "laplacian")
    together = derivatives(model, points, parts | {laplacian}, "float64")
    alone = derivatives(model, points, frozenset({laplacian}), "float64")
    np.testing.assert_allclose(
        together[laplacian], sum(together[part] for part in parts), rtol=1e-12
    )
    np.testing.assert_allclose(alone[laplacian], together[laplacian], rtol=1e-12)


@pytest.mark.parametrize("space", [(True, False), (False, True)])
def test_the_laplacian_leaves_time_out(draw, space):
    units = Layout(
        ("x", "t"), ("u", "v"), (0.5, 0.01), (0.5, 0.01), (0.0, 0.0), (1.0, 1.0), space, True
    )
    model = Model(draw("mlp"), {}, {}, units, ())
    pure = Derivative("u", tuple(2 * int(s) for s in space))
    wanted = frozenset({pure, Derivative("u", "laplacian")})
    found = derivatives(model, points_of(units), wanted, "float64")
    np.testing.assert_allclose(found[Derivative("u", "laplacian")], found[pure], rtol=1e-12)


# -- units ------------------------------------------------------------------------------------

UNITS = {
    "heat": layout((0.5, 0.01), (0.5, 0.01)),
    "offset fields": layout((2.0, -1.0), (3.0, 0.25), (300.0, -5.0), (40.0, 1e-3)),
    "nanometres": layout((0.0, 5e-10), (1e-9, 5e-10), (0.0, 0.0), (1e-6, 2.0)),
    "gigametres": layout((5e8, 0.0), (5e8, 1e9), (0.0, 0.0), (1.0, 1e9)),
    "both": layout((0.0, 5e8), (1e-9, 5e8), (1.0, 0.0), (1.0, 1.0)),
}


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
def test_exact_factors_in_any_unit_in_float64(case, units):
    model, points, expected = case("mlp", "tanh", units, depth=1)
    assert_agree(derivatives(model, points, WANTED | LAPLACIANS, "float64"), expected, 1e-12)


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
def test_exact_factors_in_any_unit_in_float32(case, units):
    model, points, expected = case("mlp", "tanh", units, depth=1)
    # In nanometres the fourth derivative of a field of size one is too large for the type, or so
    # nearly that the compiler, which multiplies constants first, leaves its range on the way.
    wanted = [d for d in WANTED | LAPLACIANS if np.abs(expected[d]).max() < 1e36]
    assert len(wanted) >= 0.8 * len(expected)
    found = derivatives(model, points, frozenset(wanted), "float32")
    assert_agree(found, expected, lambda order: 40 * ROUNDING * 4**order)


@every_architecture
def test_every_architecture_in_the_units_of_heat(case, kind):
    model, points, expected = case(kind, "tanh", UNITS["heat"], order=2)
    wanted = up_to(2) | LAPLACIANS
    assert_agree(derivatives(model, points, wanted, "float64"), expected, 1e-12)


# -- the fallback -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "weights"),
    [*((kind, (1.0, 1.0)) for kind in ARCHITECTURES), ("mlp", (0.25, 1.0)), ("mlp", (1.0, 0.0))],
)
def test_the_fallback_gives_the_same_channels(draw, kind, weights):
    wanted = frozenset(
        {Derivative("u", (3, 0)), Derivative("u", (1, 1)), Derivative("u", "laplacian")}
    )
    plan = make_plan(wanted, 2, weights)

    @eqx.filter_jit
    def both(network, points):
        return network.propagate(points, plan).stack, propagate_by_jvp(network, points, plan).stack

    with precision.scope("float64"):
        network = precision.cast(draw(kind, width=5, depth=2), "float64")
        rule, general = both(network, jnp.asarray(points_of(layout())))
        assert rule.shape == general.shape == (plan.channels, 5, 2)
        np.testing.assert_allclose(rule, general, rtol=1e-11, atol=1e-13)


class Attention(Network):
    """A network with no rule for Taylor series: neurons compete by a softmax."""

    entry: Linear
    output: Linear
    masks: tuple[Fixed, ...]

    def forward(self, series, hook=None):
        shares = jax.nn.softmax(series.linear(self.entry.weight, self.entry.bias).value, axis=1)
        hidden = Series(shares[None], Plan(series.plan.dimension))
        return self.output(self.neurons(0, hidden, hook))

    def propagate(self, points, plan, hook=None):
        def columns(points):
            return self.forward(Series.of_points(points, Plan(plan.dimension)), hook).value

        return propagate_by_jvp(columns, points, plan)

    def following(self, layer):
        return self.output

    def incoming(self, layer):
        return self.entry

    def with_following(self, layer, linear):
        return eqx.tree_at(lambda network: network.output, self, linear)

    def compact(self):
        return self


@pytest.fixture
def attention(draw) -> Attention:
    donor = draw("mlp", depth=1, width=6)
    return Attention(donor.hidden[0], donor.output, donor.masks)


def test_an_architecture_without_a_rule_has_every_derivative(attention):
    model = Model(attention, {}, {}, UNITS["heat"], ())
    points = points_of(UNITS["heat"])
    found = derivatives(model, points, up_to(3) | LAPLACIANS, "float64")
    assert_agree(found, reference(model, points, 3), 1e-12)


def test_an_architecture_without_a_rule_can_be_masked_and_folded(attention):
    points = jnp.asarray(points_of(layout()), jnp.float32)
    removed = np.array([1, 0, 0, 0, 1, 0], bool)
    values = attention.activations(points)[0]
    assert values.shape == (5, 6)
    constants = np.where(removed, np.asarray(values.mean(axis=0)), 0.0)
    pruned = attention.fold(0, constants).with_masks([(~removed).astype(float)])
    assert pruned.alive == (4,)
    replaced = values * ~removed + constants
    expected = replaced @ attention.output.weight.T + attention.output.bias
    np.testing.assert_allclose(pruned(points), expected, rtol=1e-5, atol=1e-6)
