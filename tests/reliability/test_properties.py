"""Laws that hold for any equation, any order of readings, any unit, any sizes."""

from __future__ import annotations

import inspect
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpinn import precision
from unpinn.evaluation import field_errors, maximum_error, mean_square, relative_l2
from unpinn.network import ARCHITECTURES, Architecture, make_model
from unpinn.problem import Condition, Grid, Problem, Scalar, observe
from unpinn.training import Adam, Partition, Protocol, Quiet, hold_out, split_folds, train
from unpinn.unlearning import (
    ByMixture,
    ByShare,
    ByThreshold,
    NativePrunable,
    Recipe,
    Schedule,
    Scores,
    prune,
    unlearn,
)
from unpinn.unlearning._partition import part

# -- derivatives of any equation --------------------------------------------------------------

AXES = ("x", "y", "t")
OPTIONS = {"fourier": {"features": 3, "spread": 0.7}}
COEFFICIENTS = st.floats(-2, 2).filter(lambda value: abs(value) > 0.01)


class Term(NamedTuple):
    """A coefficient times a power of one derivative, another derivative, and a coordinate."""

    coefficient: float
    orders: tuple[int, ...]
    power: int
    other: tuple[int, ...]
    axis: int


class Case(NamedTuple):
    terms: list[Term]
    ends: list[tuple[float, float]]
    kind: str
    activation: str
    scale: float
    seed: int


@st.composite
def cases(draw) -> Case:
    dimension = draw(st.integers(1, 3))
    some = st.lists(st.integers(0, 3), min_size=dimension, max_size=dimension)
    orders = some.map(tuple).filter(lambda counts: sum(counts) <= 3)
    term = st.builds(
        Term, COEFFICIENTS, orders, st.integers(1, 3), orders, st.integers(0, dimension - 1)
    )
    ends = st.tuples(st.floats(-3, 3), st.floats(0.2, 5)).map(lambda e: (e[0], e[0] + e[1]))
    return Case(
        draw(st.lists(term, min_size=1, max_size=3)),
        draw(st.lists(ends, min_size=dimension, max_size=dimension)),
        draw(st.sampled_from(sorted(ARCHITECTURES))),
        draw(st.sampled_from(["tanh", "sin", "swish"])),
        draw(st.floats(0.1, 10)),
        draw(st.integers(0, 99)),
    )


def written(terms: list[Term], value_of, coordinate_of) -> Any:
    """The equation, whatever derivatives are taken from."""
    return sum(
        term.coefficient
        * value_of(term.orders) ** term.power
        * jnp.sin(value_of(term.other))
        * coordinate_of(term.axis)
        for term in terms
    )


def residual_of(terms: list[Term], axes: tuple[str, ...]):
    """The equation as a user writes it, with arguments named after the coordinates."""

    def residual(u, **coordinates):
        def value_of(orders):
            asked = [item for name, n in zip(axes, orders, strict=True) if n for item in (name, n)]
            return u.d(*asked) if asked else u.value

        return written(terms, value_of, lambda axis: coordinates[axes[axis]])

    only = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in ("u", *axes)]
    residual.__signature__ = inspect.Signature(only)  # type: ignore[attr-defined]
    return residual


def nested(model, points, orders: tuple[int, ...]) -> jax.Array:
    """One derivative by differentiating the prediction once after the other."""
    function = lambda point: model.predict(point[None])[0, 0]  # noqa: E731
    for axis, count in enumerate(orders):
        for _ in range(count):
            function = _along(function, jnp.eye(len(orders), dtype=points.dtype)[axis])
    return jax.vmap(function)(points)


def _along(function, direction):
    return lambda point: jax.jvp(function, (point,), (direction,))[1]


def check_derivatives(case: Case) -> None:
    axes = AXES[: len(case.ends)]
    problem = Problem(
        coordinates=dict(zip(axes, case.ends, strict=True)),
        fields=["u"],
        equations={"any": residual_of(case.terms, axes)},
        scales={"u": case.scale},
    )
    network = Architecture(case.kind, 4, 2, case.activation, OPTIONS.get(case.kind, {}))
    low, high = np.array(case.ends).T
    inner = np.random.default_rng(case.seed).uniform(0.1, 0.9, (4, len(axes)))
    with precision.scope("float64"):
        model = precision.cast(make_model(problem, None, network, case.seed), "float64")
        points = jnp.asarray(low + inner * (high - low))

        @jax.jit
        def both(points):
            found = model.evaluate(problem.equation_expressions[0], points)[:, 0]
            value_of = lambda orders: nested(model, points, orders)  # noqa: E731
            each = [written([t], value_of, lambda axis: points[:, axis]) for t in case.terms]
            return found, jnp.stack(each)

        found, each = map(np.asarray, both(points))
    # Terms may cancel; what they had is the size that rounding is judged by.
    error = np.abs(found - each.sum(axis=0))
    assert (error <= 1e-9 * (np.abs(each).sum(axis=0) + 1e-12)).all()


@settings(max_examples=2)
@given(case=cases())
def test_the_residual_of_any_equation_equals_nested_differentiation(case):
    check_derivatives(case)


@pytest.mark.slow
@settings(max_examples=60)
@given(case=cases())
def test_the_residual_of_many_equations_equals_nested_differentiation(case):
    check_derivatives(case)


# -- the order of readings --------------------------------------------------------------------

COUNT = 40
RULES = {"share": ByShare(0.6), "threshold": ByThreshold(0.7), "mixture": ByMixture()}


def two_kinds(seed: int) -> Scores:
    random = np.random.default_rng(seed)
    noise = np.where(random.random(COUNT) < 0.3, 2.0, 0.1)
    return Scores(noise[:, None] * random.standard_normal((COUNT, 1)), random.random((COUNT, 1)))


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=15)
@given(seed=st.integers(0, 500), order=st.permutations(range(COUNT)))
def test_a_partition_follows_the_order_of_its_readings(name, seed, order):
    scores = two_kinds(seed)
    plain, moved = RULES[name](scores), RULES[name](scores.take(np.array(order)))
    np.testing.assert_array_equal(moved.retained, plain.retained[order])
    np.testing.assert_allclose(moved.weight, plain.weight[order], atol=1e-6)
    assert moved.threshold == pytest.approx(plain.threshold)


@settings(max_examples=8)
@given(order=st.permutations(range(COUNT)), criterion=st.sampled_from(["bias", "useless", "rms"]))
def test_pruning_does_not_know_the_order_of_readings(order, criterion):
    problem = pose()
    model = make_model(problem, None, Architecture(width=10, depth=2), 3)
    points = np.linspace(0, 2, COUNT)[:, None]
    retained = points[:, 0] < 1.3
    schedule = Schedule(0.2, 3, criterion=criterion)
    removed = []
    for rows in (np.arange(COUNT), np.array(order)):
        kept, nothing = retained[rows], np.zeros(COUNT)
        partition = Partition(nothing, nothing, nothing, kept, kept.astype(float), 0.0, "told")
        _, pruning = prune(NativePrunable(model, points[rows]), partition, schedule)
        removed.append([n.tolist() for step in pruning.steps for n in step.removed])
    assert removed[0] == removed[1] and sum(map(len, removed[0])) == 10


def decay(u, k):
    return u.x + k * u


def start(u):
    return u - 1.0


def tall_start(u):
    return u - 40.0


def pose(low=0.0, width=2.0, condition=start) -> Problem:
    return Problem(
        coordinates={"x": (low, low + width)},
        fields=["u"],
        unknowns=[Scalar("k", initial=1.0 / width)],
        equations={"decay": decay},
        conditions=[Condition("start", condition, at={"x": low})],
        collocation=Grid(8),
        name="decay",
    )


NOISE = np.where(np.arange(COUNT) % 4 == 1, 0.5, 0.02)
X = np.linspace(0, 1, COUNT)
VALUES = np.exp(-1.4 * X) + NOISE * np.random.default_rng(2).standard_normal(COUNT)
RECIPE = Recipe("brief", ByMixture(), Schedule(steps=4), (Adam(epochs=5, rate=1e-3),))


def whole(problem, points, values):
    """A baseline and what unlearning makes of it."""
    protocol = Protocol(
        (Adam(epochs=120, rate=1e-2, rescale="reference"),),
        architecture=Architecture(width=8, depth=1),
    )
    observations = observe(problem, np.asarray(points)[:, None], values)
    fit = train(problem, observations, protocol, seed=1, watcher=Quiet())
    return fit, unlearn(fit, RECIPE, watcher=Quiet())


@pytest.fixture(scope="module")
def usual():
    return whole(pose(), 2 * X, VALUES)


def test_permuting_readings_changes_nothing_but_their_order(usual):
    order = np.random.default_rng(0).permutation(COUNT)
    for plain, moved in zip(usual, whole(pose(), 2 * X[order], VALUES[order]), strict=True):
        # The order in which numbers are added up is all that differs.
        assert moved.unknowns["k"] == pytest.approx(plain.unknowns["k"], rel=1e-3)
        points = np.linspace(0, 2, 9)[:, None]
        np.testing.assert_allclose(
            moved.predict(points, "u"), plain.predict(points, "u"), atol=2e-3
        )
    assert len(plain.suspects) > 3
    np.testing.assert_array_equal(moved.partition.retained, plain.partition.retained[order])
    np.testing.assert_allclose(moved.partition.weight, plain.partition.weight[order], atol=0.02)


# -- units ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "width"), [(0.0, 2048.0), pytest.param(-7.0, 0.03, marks=pytest.mark.slow)]
)
def test_units_of_coordinates_and_fields_change_nothing_but_units(usual, low, width):
    # Another length, another origin, and a field forty times as large.
    other = whole(pose(low, width, tall_start), low + width * X, 40.0 * VALUES)
    inner = np.linspace(0, 1, 9)[:, None]
    for plain, changed in zip(usual, other, strict=True):
        found = changed.unknowns["k"] * width / 2.0
        assert found == pytest.approx(plain.unknowns["k"], rel=5e-3)
        np.testing.assert_allclose(
            changed.predict(low + width * inner, "u") / 40.0,
            plain.predict(2 * inner, "u"),
            atol=5e-3,
        )
    np.testing.assert_array_equal(changed.partition.retained, plain.partition.retained)
    np.testing.assert_allclose(changed.partition.weight, plain.partition.weight, atol=0.02)
    noise = changed.partition.noise
    assert noise.low / 40.0 == pytest.approx(plain.partition.noise.low, rel=0.05)


# -- counts -----------------------------------------------------------------------------------


@given(
    share=st.floats(0.01, 1.0),
    seen=arrays(bool, COUNT).filter(lambda mask: mask.any()),
    seed=st.integers(0, 99),
)
def test_a_share_is_a_share_of_the_readings_that_have_a_say(share, seen, seed):
    found = part(two_kinds(seed), ByShare(share), seen)
    assert found.retained[seen].sum() == max(1, round(share * seen.sum()))
    assert (found.weight > 0).sum() == found.retained[seen].sum()


@given(share=st.floats(0.01, 0.99), folds=st.integers(2, 12), seed=st.integers(0, 99))
def test_held_out_readings_and_folds_are_as_many_as_asked(share, folds, seed):
    observations = observe(pose(), 2 * X[:, None], VALUES)
    rows = hold_out(observations, share, seed=seed)
    assert len(rows) == len(set(rows.tolist())) == min(max(1, round(share * COUNT)), COUNT - 1)
    parts = split_folds(observations, folds, by="reading", seed=seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(COUNT))
    assert {len(rows) for rows in parts} <= {COUNT // folds, math.ceil(COUNT / folds)}


# -- errors -----------------------------------------------------------------------------------

FIELDS = arrays(float, 7, elements=st.floats(-1e3, 1e3).map(lambda v: v if abs(v) > 1e-3 else 0.0))


@given(prediction=FIELDS, truth=FIELDS.filter(lambda values: values.any()))
def test_norms_bound_each_other(prediction, truth):
    errors, count = field_errors(prediction, truth), len(truth)
    slack = 1 + 1e-9
    root = math.sqrt(errors["mse"])
    # |e|_max <= |e|_2 <= sqrt(n) |e|_max, and |.|_2 <= |.|_1 <= sqrt(n) |.|_2 above and below.
    assert errors["max_error"] <= math.sqrt(count) * root * slack
    assert root <= errors["max_error"] * slack
    assert errors["l1re"] <= math.sqrt(count) * errors["l2re"] * slack
    assert errors["l2re"] <= math.sqrt(count) * errors["l1re"] * slack


@given(first=FIELDS, second=FIELDS, third=FIELDS.filter(lambda values: values.any()))
def test_a_detour_is_never_shorter(first, second, third):
    size = np.linalg.norm(third)
    direct, last = relative_l2(first, third), relative_l2(second, third)
    assert direct <= (np.linalg.norm(first - second) / size + last) * (1 + 1e-9)
    there = maximum_error(first, second) + maximum_error(second, third)
    assert maximum_error(first, third) <= there * (1 + 1e-9)
    roots = [math.sqrt(mean_square(a, b)) for a, b in
             ((first, third), (first, second), (second, third))]  # fmt: skip
    assert roots[0] <= (roots[1] + roots[2]) * (1 + 1e-9)
