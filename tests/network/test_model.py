"""Models: networks in the user's units, with unknown numbers beside them."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn._errors import UserError
from unpinn.network import ARCHITECTURES, Architecture, Layout, make_layout, make_model
from unpinn.problem import Derivative, Field, Problem, Scalar, observe

SMALL = Architecture(width=5, depth=2)
RNG = np.random.default_rng(0)


def make_problem(**changes) -> Problem:
    statement = dict(
        coordinates={"x": (-1, 3), "y": (0, 1e-3), "t": (0, 0.02)},
        fields=["u", "v", "p"],
        unknowns=[Scalar("k", 4.0, (0, None)), Field("a", scale=400, offset=300), Scalar("c", 2.0)],
        equations={
            "heat": lambda u, k, a, x: u.t - k * a * u.laplacian + x,
            "pair": lambda u, v, c: (c * u.x, v.y),
        },
        measurements={"strain": lambda u: u.x},
        scales={"p": 7},
    )
    return Problem(**{**statement, **changes})


def readings(problem: Problem, values, quantities="u"):
    values = np.asarray(values, float).reshape(len(values), -1)
    low, high = np.array(list(problem.coordinates.values())).T
    return observe(problem, low + RNG.random((len(values), len(low))) * (high - low), values,
                   quantities)  # fmt: skip


# -- units ------------------------------------------------------------------------------------


def test_unscaled_units_are_the_problem_s_own():
    problem = make_problem()
    layout = make_layout(problem, readings(problem, [5.0, 6.0]), scaled=False)
    assert layout.coordinates == ("x", "y", "t")
    assert layout.columns == ("u", "v", "p", "a")
    assert layout.centre == layout.offset[:3] == (0.0, 0.0, 0.0)
    assert layout.half == layout.scale[:3] == (1.0, 1.0, 1.0)
    assert layout.unit == 1.0
    assert not layout.scaled


def test_scaled_coordinates_run_from_minus_one_to_one():
    problem = make_problem()
    layout = make_layout(problem, None, scaled=True)
    np.testing.assert_allclose(layout.centre, [1.0, 5e-4, 0.01])
    np.testing.assert_allclose(layout.half, [2.0, 5e-4, 0.01])
    assert layout.space == (True, True, False)
    model = make_model(problem, None, SMALL, 0)
    corners = jnp.array([[-1.0, 0.0, 0.02], [3.0, 1e-3, 0.0], [1.0, 5e-4, 0.01]])
    np.testing.assert_allclose(
        model.inputs(corners), [[-1, -1, 1], [1, 1, -1], [0, 0, 0]], atol=1e-6
    )


def test_units_of_what_no_reading_shows():
    layout = make_layout(make_problem(), None, scaled=True)
    # Unread fields are of size one, a stated scale is one, a coefficient field says its own.
    assert layout.scale == (1.0, 1.0, 7.0, 400.0)
    assert layout.offset == (0.0, 0.0, 0.0, 300.0)


@pytest.mark.parametrize(
    ("values", "offset", "scale"),
    [
        (np.linspace(-2, 2, 101), 0.0, 1.8),
        (np.linspace(0, 10, 101), 0.0, 9.5),
        (1e6 + np.linspace(-1, 1, 101), 1e6, 0.9),
        (-300 + np.linspace(-1, 1, 101), -300.0, 0.9),
        (np.full(10, 5.0), 0.0, 5.0),
        (np.zeros(10), 0.0, 1.0),
        (np.r_[np.linspace(-1, 1, 1000), 1e9, -1e9], 0.0, 0.9),
        (np.r_[np.linspace(-1, 1, 101), [np.nan] * 50], 0.0, 0.9),
    ],
    ids=["centred", "one-sided", "far", "far below", "constant", "zero", "outliers", "gaps"],
)
def test_an_observed_field_has_its_readings_units(values, offset, scale):
    problem = make_problem()
    values = np.stack([values, np.ones(len(values))], axis=1)
    layout = make_layout(problem, readings(problem, values, ["u", "v"]), scaled=True)
    assert layout.offset[0] == pytest.approx(offset, abs=1e-6 * scale)
    assert layout.scale[0] == pytest.approx(scale, rel=0.02)


def test_a_measurement_says_nothing_of_a_field_s_units():
    problem = make_problem()
    layout = make_layout(problem, readings(problem, [50.0, 60.0], "strain"), scaled=True)
    assert (layout.offset[0], layout.scale[0]) == (0.0, 1.0)


def test_extra_columns_come_last_in_units_of_one():
    layout = make_layout(make_problem(), None, True, ("noise",))
    assert layout.columns[-1] == "noise"
    assert (layout.offset[-1], layout.scale[-1]) == (0.0, 1.0)


def test_factors_of_derivatives():
    layout = Layout(
        ("x", "t"), ("u",), (0.0, 0.0), (2.0, 0.01), (5.0,), (3.0,), (True, False), True
    )
    factors = {
        (0, 0): 3.0,
        (1, 0): 3.0 / 2,
        (2, 1): 3.0 / 4 / 0.01,
        "laplacian": 3.0 / 4,
    }
    for orders, factor in factors.items():
        assert layout.factor(Derivative("u", orders)) == pytest.approx(factor, rel=1e-12)


def test_the_laplacian_weighs_each_direction_by_its_width():
    layout = make_layout(make_problem(), None, scaled=True)
    plan = layout.plan(frozenset({Derivative("u", "laplacian")}))
    np.testing.assert_allclose(plan.laplacian, [(5e-4 / 2.0) ** 2, 1.0, 0.0])
    assert layout.unit == 5e-4


# -- models -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem() -> Problem:
    return make_problem()


@pytest.fixture(scope="module")
def model(problem):
    return make_model(problem, None, SMALL, seed=3)


@pytest.fixture(scope="module")
def points(problem) -> jnp.ndarray:
    low, high = np.array(list(problem.coordinates.values())).T
    return jnp.asarray(low + RNG.random((5, 3)) * (high - low), jnp.float32)


def test_a_seed_decides(problem):
    one, same, other = (make_model(problem, None, SMALL, seed) for seed in (3, 3, 4))
    assert eqx.tree_equal(one, same)
    assert not eqx.tree_equal(one, other)


@pytest.mark.parametrize("scaled", [True, False])
def test_unknowns_start_at_their_initial_values_in_natural_units(problem, scaled):
    unknowns = make_model(problem, None, SMALL, 0, scaled).unknowns()
    assert list(unknowns) == ["k", "c"]
    assert unknowns["k"].item() == pytest.approx(4.0, rel=1e-6)
    assert unknowns["c"].item() == pytest.approx(2.0, rel=1e-6)


def test_predictions_are_in_the_user_s_units(model, points):
    inside = model.network(model.inputs(points))
    expected = np.asarray(inside) * [1, 1, 7, 400] + [0, 0, 0, 300]
    np.testing.assert_allclose(model.predict(points), expected, rtol=1e-5)
    zeros = frozenset(Derivative(name, (0, 0, 0)) for name in model.layout.columns)
    values = model.derivatives(points, zeros)
    for number, name in enumerate(model.layout.columns):
        np.testing.assert_allclose(
            values[Derivative(name, (0, 0, 0))], expected[:, number], rtol=1e-5
        )


def test_equations_are_evaluated_with_everything_they_name(problem, model, points):
    heat, pair = problem.equation_expressions
    values = model.derivatives(points, heat.derivatives | pair.derivatives)
    u_t, u_x = (values[Derivative("u", orders)] for orders in ((0, 0, 1), (1, 0, 0)))
    laplacian = values[Derivative("u", "laplacian")]
    a, v_y = values[Derivative("a", (0, 0, 0))], values[Derivative("v", (0, 1, 0))]
    expected = u_t - 4.0 * a * laplacian + points[:, 0]
    found, both = model.evaluate_all((heat, pair), points)
    assert found.shape == (5, 1) and both.shape == (5, 2)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-4)
    np.testing.assert_allclose(both, np.stack([2.0 * u_x, v_y], axis=1), rtol=1e-4)
    np.testing.assert_allclose(model.evaluate(pair, points), both, rtol=1e-4)


def test_an_equation_without_fields_needs_no_network(points):
    stated = make_problem(equations={"e": lambda x, k: k * x}, measurements={})
    model = make_model(stated, None, SMALL, 0)
    found = model.evaluate(stated.equation_expressions[0], points)
    np.testing.assert_allclose(found[:, 0], 4.0 * points[:, 0], rtol=1e-5)


def test_a_hook_reaches_the_network(problem, model, points):
    silence = lambda layer, series: series.scale(jnp.zeros(5))  # noqa: E731
    quiet = model.evaluate(problem.equation_expressions[1], points, silence)
    np.testing.assert_array_equal(quiet, 0.0)


def test_precision_follows_the_points(problem, model, points):
    with precision.scope("float64"):
        wide = precision.cast(model, "float64")
        found = wide.evaluate_all(problem.equation_expressions, jnp.asarray(points, "float64"))
    assert [value.dtype.name for value in found] == ["float64"] * 2
    narrow = model.evaluate_all(problem.equation_expressions, points)
    assert [value.dtype.name for value in narrow] == ["float32"] * 2
    for one, other in zip(found, narrow, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-3 * np.abs(one).max())


# -- architectures ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_an_architecture_is_plain_configuration(kind):
    architecture = Architecture(kind, width=6, depth=3, activation="sin")
    network = architecture.make(jax.random.key(0), 3, 2)
    assert network.widths == (6, 6, 6)
    assert network(jnp.zeros((4, 3))).shape == (4, 2)
    assert hash(architecture) == hash(Architecture(kind, 6, 3, "sin", {}))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (dict(kind="cnn"), "architecture 'cnn' is not known; choose one of mlp, modified"),
        (dict(width=0), "a width and a depth of 1 or more"),
        (dict(depth=0), "a width and a depth of 1 or more"),
        (dict(activation="relu"), "activation 'relu' is not known"),
        (
            dict(options={"features": 8}),
            "architecture 'mlp' has no option 'features'; it has start",
        ),
        (dict(kind="fourier", options={"width": 8}), "'fourier' has no option 'width'"),
    ],
)
def test_an_architecture_that_is_none_is_told(arguments, told):
    with pytest.raises(UserError) as caught:
        Architecture(**arguments)
    assert told in str(caught.value)


def test_a_start_that_is_none_is_told():
    with pytest.raises(UserError, match="the start 'zeros' of a network is not known"):
        make_model(make_problem(), None, Architecture(options={"start": "zeros"}), 0)


def test_the_paper_s_start_is_uniform_in_the_fan_in():
    network = make_model(make_problem(), None, Architecture(), 0).network
    for layer, inputs in zip([*network.hidden, network.output], [3] + [100] * 5, strict=True):
        numbers = np.concatenate([np.ravel(layer.weight), np.ravel(layer.bias)])
        bound = 1 / np.sqrt(inputs)
        assert np.abs(numbers).max() <= bound
        assert np.std(layer.weight) == pytest.approx(bound / np.sqrt(3), rel=0.1)


def test_glorot_starts_with_its_variance_and_no_bias():
    network = make_model(make_problem(), None, Architecture("modified", depth=2), 0).network
    assert not np.any(network.hidden[1].bias)
    assert np.std(network.hidden[1].weight) == pytest.approx(0.1, rel=0.05)


def test_fourier_frequencies_have_their_spread():
    options = {"features": 500, "spread": 3.0}
    network = make_model(make_problem(), None, Architecture("fourier", 5, 1, options=options), 0)
    assert np.std(network.network.frequencies.array) == pytest.approx(3.0, rel=0.1)
