"""Plans: the recipes are exact on polynomials, and no direction is propagated in vain."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpinn.network import Plan, make_plan
from unpinn.problem import Derivative


def multi_indices(dimension: int, highest: int):
    return [
        orders
        for orders in itertools.product(range(highest + 1), repeat=dimension)
        if sum(orders) <= highest
    ]


def plan_for(*wanted, dimension=2, space=(1.0, 1.0)) -> Plan:
    return make_plan(frozenset(Derivative("u", orders) for orders in wanted), dimension, space)


def taylor_at_zero(plan: Plan, exponents) -> np.ndarray:
    """The channels of the monomial x^exponents at the origin."""
    degree = sum(exponents)
    channels = [float(degree == 0)]
    for direction, order in zip(plan.directions, plan.orders, strict=True):
        along = math.prod(step**e for step, e in zip(direction, exponents, strict=True))
        channels += [float(along) if k == degree else 0.0 for k in range(1, order + 1)]
    return np.array(channels)


def read(plan: Plan, orders, exponents) -> float:
    channels = taylor_at_zero(plan, exponents)
    return sum(factor * channels[c] for c, factor in plan.recipe(orders))


def assert_exact(plan: Plan, orders) -> None:
    for exponents in multi_indices(plan.dimension, sum(orders) + 1):
        derivative = math.prod(map(math.factorial, orders)) if exponents == orders else 0.0
        assert read(plan, orders, exponents) == pytest.approx(derivative, rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("orders", multi_indices(2, 6), ids=str)
def test_every_derivative_in_two_coordinates(orders):
    assert_exact(plan_for(orders), orders)


@pytest.mark.parametrize("orders", [o for o in multi_indices(3, 4) if min(o) > 0], ids=str)
def test_mixed_derivatives_in_three_coordinates(orders):
    assert_exact(plan_for(orders, dimension=3, space=(1.0,) * 3), orders)


def test_a_mixed_derivative_in_five_coordinates():
    orders = (1, 0, 1, 0, 1)
    assert_exact(plan_for(orders, dimension=5, space=(1.0,) * 5), orders)


@settings(max_examples=25)
@given(st.sets(st.sampled_from(multi_indices(2, 4)), min_size=1, max_size=6))
def test_any_set_together(wanted):
    plan = plan_for(*wanted)
    for orders in wanted:
        assert_exact(plan, orders)


# -- cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "channels"),
    [
        ([(0, 0)], 1),
        ([(1, 0)], 2),
        ([(2, 0), (1, 0)], 3),
        ([(2, 0), (0, 1)], 4),
        ([(4, 0), (0, 2)], 7),
        (["laplacian"], 4),
        (["laplacian", (1, 0), (0, 1)], 4),
        (["laplacian", (2, 0)], 5),
        # A monomial of two coordinates and order k needs k directions, known ones for nothing.
        ([(1, 1)], 5),
        ([(2, 1)], 10),
        ([(2, 2)], 17),
        ([(3, 3)], 37),
        ([(4, 0), (2, 2), (0, 4)], 17),
        ([(1, 1), (2, 0), (0, 2)], 7),
    ],
)
def test_no_channel_is_propagated_in_vain(wanted, channels):
    assert plan_for(*wanted).channels == channels


def test_the_laplacian_costs_one_channel_more_than_the_gradient_in_any_dimension():
    for dimension in range(1, 7):
        plan = plan_for("laplacian", dimension=dimension, space=(1.0,) * dimension)
        assert plan.channels == 1 + dimension + 1


def test_time_is_no_part_of_the_laplacian():
    plan = plan_for("laplacian", dimension=3, space=(1.0, 0.25, 0.0))
    assert plan.laplacian == (1.0, 0.25, 0.0)
    assert plan.directions == ((0, 1, 0), (1, 0, 0))
    assert plan_for((2, 0)).laplacian is None


@given(st.sets(st.sampled_from([*multi_indices(2, 4), "laplacian"]), min_size=1))
def test_channels_are_numbered_without_gaps(wanted):
    plan = plan_for(*wanted)
    places = [
        plan.channel(number, k)
        for number, order in enumerate(plan.orders)
        for k in range(1, order + 1)
    ]
    expected = plan.channels - (plan.laplacian is not None)
    assert places == list(range(1, expected))
    assert len(set(plan.directions)) == len(plan.directions)


@given(st.permutations(multi_indices(2, 3)))
def test_the_order_of_asking_changes_nothing(wanted):
    assert plan_for(*wanted) == plan_for(*sorted(wanted))


def test_what_a_plan_does_not_hold_is_told():
    with pytest.raises(ValueError, match="does not hold the derivative"):
        plan_for((1, 0)).recipe((2, 0))
    with pytest.raises(ValueError, match="does not hold the derivative"):
        Plan(2).recipe((0, 1))


def test_the_value_is_always_there():
    assert Plan(3).recipe((0, 0, 0)) == ((0, 1.0),)
    assert Plan(3).channels == 1
