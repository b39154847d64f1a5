"""Readings: built from arrays or mappings, checked against the problem."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpinn._errors import UserError
from unpinn.problem import Observations, Problem, observe

POINTS = np.array([[0.0, 0.0], [0.5, 0.2], [1.0, 1.0]])
VALUES = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(
        coordinates={"x": (0, 1), "t": (0, 1)},
        fields=["u", "v"],
        equations={"e": lambda u: u.t},
        measurements={"strain": lambda u: u.x, "both": lambda u, v: (u, v)},
    )


def refused(told: str, problem, *arguments, **names) -> None:
    with pytest.raises(UserError) as caught:
        observe(problem, *arguments, **names)
    assert told in str(caught.value)


# -- building ---------------------------------------------------------------------------------


def test_arrays_are_all_fields_unless_told(problem):
    readings = observe(problem, POINTS, VALUES)
    np.testing.assert_array_equal(readings.points, POINTS)
    np.testing.assert_array_equal(readings.values, VALUES)
    assert readings.quantities == ("u", "v")
    assert (readings.sigma, readings.sensor, len(readings)) == (None, None, 3)


@pytest.mark.parametrize("quantities", ["strain", ["strain"], ("strain",)])
def test_one_quantity_may_be_a_plain_column(problem, quantities):
    readings = observe(problem, POINTS, VALUES[:, 0], quantities)
    assert readings.values.shape == (3, 1)
    assert readings.quantities == ("strain",)


@pytest.mark.parametrize(
    "convert",
    [list, np.float32, jnp.asarray, pd.DataFrame, np.asfortranarray],
    ids=["list", "numpy", "jax", "pandas", "fortran"],
)
def test_anything_like_an_array_will_do(problem, convert):
    plain = convert(POINTS.tolist()) if convert is list else convert(POINTS)
    readings = observe(problem, plain, VALUES)
    assert readings.points.dtype == readings.values.dtype == np.float64
    np.testing.assert_allclose(readings.points, POINTS, rtol=1e-7)


def test_mappings_go_by_name_in_any_order(problem):
    table = pd.DataFrame({"t": POINTS[:, 1], "x": POINTS[:, 0], "note": ["a", "b", "c"]})
    readings = observe(
        problem,
        {"t": table["t"], "x": table["x"], "unused": "anything"},
        {"v": VALUES[:, 1], "u": VALUES[:, 0].tolist()},
    )
    np.testing.assert_array_equal(readings.points, POINTS)
    assert readings.quantities == ("v", "u")
    np.testing.assert_array_equal(readings.values, VALUES[:, ::-1])


def test_an_unknown_field_can_be_read():
    from unpinn.problem import Field

    stated = Problem(
        coordinates={"x": (0, 1)},
        fields=["u"],
        unknowns=[Field("a")],
        equations={"e": lambda u, a: a * u.x},
    )
    assert observe(stated, [0.5], [2.0], "a").quantities == ("a",)
    assert observe(stated, {"x": [0.5]}, {"a": [2.0], "u": [1.0]}).values.tolist() == [[2.0, 1.0]]


def test_a_missing_quantity_is_not_a_number(problem):
    values = VALUES.copy()
    values[1, 0] = math.nan
    readings = observe(problem, POINTS, values)
    np.testing.assert_array_equal(readings.present, [[True, True], [False, True], [True, True]])


@pytest.mark.parametrize("sigma", [0.1, [0.1, 0.1, 0.1], np.full(3, 0.1), np.float32(0.1)])
def test_sigma_is_one_a_reading(problem, sigma):
    readings = observe(problem, POINTS, VALUES, sigma=sigma)
    np.testing.assert_allclose(readings.sigma, [0.1] * 3, rtol=1e-7)


@pytest.mark.parametrize("sensor", [["a", "b", "a"], [1, 2, 1], np.array(["x", 1, None], object)])
def test_a_sensor_is_anything_that_names(problem, sensor):
    readings = observe(problem, POINTS, VALUES, sensor=sensor)
    assert readings.sensor.shape == (3,)
    assert list(readings.sensor) == list(sensor)


def test_the_caller_s_arrays_stay_the_caller_s(problem):
    points, values, sigma = POINTS.copy(), VALUES.copy(), np.ones(3)
    readings = observe(problem, points, values, sigma=sigma)
    before = readings.fingerprint
    points += 1
    values += 1
    sigma += 1
    assert readings.fingerprint == before


# -- refusing ---------------------------------------------------------------------------------


def test_counts_must_match(problem):
    refused("there are 3 points but 2 values", problem, POINTS, VALUES[:2])
    refused("there are no readings", problem, np.empty((0, 2)), np.empty((0, 2)))


def test_points_of_another_shape(problem):
    refused("points have 1 columns, but the problem has the coordinates x, t", problem,
            POINTS[:, 0], VALUES)  # fmt: skip
    refused("the points of the readings must have two axes", problem, POINTS[None], VALUES)
    refused("the points of the readings must be numbers", problem, [["a", "b"]], VALUES[:1])
    refused("the points of the readings must be numbers", problem, [[1, 2], [3]], VALUES[:2])


def test_values_of_another_shape(problem):
    refused("the values have 1 columns, but the quantities are ('u', 'v')", problem, POINTS,
            VALUES[:, 0])  # fmt: skip
    refused(
        "the values have 2 columns, but the quantities are ('u',)", problem, POINTS, VALUES, "u"
    )
    refused("the values have 2 columns", problem, POINTS, VALUES, ["u", "u"])
    refused("the values of the readings must be numbers", problem, POINTS, [["high"] * 2] * 3)
    refused("the values of the readings must have two axes", problem, POINTS, 3.0)


def test_mappings_of_unequal_columns(problem):
    columns = {"x": [0.1, 0.2], "t": [0.1, 0.2]}
    refused("the readings lack the coordinate 't'", problem, {"x": [0.1]}, {"u": [1.0]})
    refused("columns of one length, not x: 2, t: 3", problem, {**columns, "t": [0.1] * 3},
            {"u": [1.0, 2.0]})  # fmt: skip
    refused(
        "columns of one length, not u: 2, v: 1", problem, columns, {"u": [1.0, 2.0], "v": [1.0]}
    )
    refused(
        "the values of 'u' of the readings must be numbers", problem, columns, {"u": ["a", "b"]}
    )
    refused("the points of 't' of the readings must be numbers", problem, {**columns, "t": ["1 s"]},
            {"u": [1.0]})  # fmt: skip
    refused("columns of one length", problem, columns, {"u": [[1.0, 2.0], [3.0, 4.0]]})
    refused("there are 2 points but 0 values", problem, columns, {})


def test_names_that_say_different_things(problem):
    refused("the values are of u, but the quantities are said to be v", problem, POINTS,
            {"u": VALUES[:, 0]}, "v")  # fmt: skip


@pytest.mark.parametrize("name", ["w", "x", "k"])
def test_an_unknown_quantity(problem, name):
    refused(f"{name!r} is neither a field nor a measurement of the problem (those are u, v, strain",
            problem, POINTS, VALUES[:, 0], name)  # fmt: skip


def test_a_measurement_of_two_values(problem):
    refused("measurement 'both' gives more than one value a point", problem, POINTS, VALUES[:, 0],
            "both")  # fmt: skip


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_readings(problem, value):
    values = VALUES.copy()
    values[2, 1] = value
    refused("row 2 reads infinity", problem, POINTS, values)


def test_readings_of_nothing(problem):
    values = VALUES.copy()
    values[1:] = math.nan
    refused("2 readings have no value at all, first in row 1", problem, POINTS, values)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_points_that_are_nowhere(problem, value):
    points = POINTS.copy()
    points[1, 0] = value
    refused("the readings have a coordinate that is not finite in row 1", problem, points, VALUES)


def test_points_outside(problem):
    points = POINTS.copy()
    points[1:, 0] = 1.5
    refused("the readings lie outside the domain in 2 rows, first in row 1 (x = 1.5", problem,
            points, VALUES)  # fmt: skip


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, [0.1, 0.0, 0.1]])
def test_a_sigma_is_above_zero(problem, sigma):
    refused("sigma must be finite and above zero", problem, POINTS, VALUES, sigma=sigma)


@pytest.mark.parametrize("sigma", [[0.1, 0.2], np.ones((3, 2)), "small"])
def test_a_sigma_of_another_shape(problem, sigma):
    refused("sigma must be one number or 3 of them", problem, POINTS, VALUES, sigma=sigma)


def test_sensors_of_another_count(problem):
    refused("there are 3 readings but", problem, POINTS, VALUES, sensor=["a", "b"])


# -- taking -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(problem) -> Observations:
    rng = np.random.default_rng(0)
    return observe(
        problem,
        rng.random((9, 2)),
        rng.normal(size=(9, 2)),
        sigma=rng.random(9) + 0.1,
        sensor=[f"s{k}" for k in range(9)],
    )


@given(index=st.lists(st.integers(-9, 8), max_size=12))
def test_readings_are_taken_together_and_in_order(many, index):
    taken = many.take(index)
    assert len(taken) == len(index)
    for part in ("points", "values", "sigma", "sensor"):
        expected = [getattr(many, part)[k].tolist() for k in index]
        assert getattr(taken, part).tolist() == expected
    assert taken.quantities == many.quantities


@given(mask=st.lists(st.booleans(), min_size=9, max_size=9))
def test_a_mask_takes_what_it_keeps(many, mask):
    chosen = np.flatnonzero(mask)
    for index in (np.array(mask), jnp.array(mask)):
        assert many.take(index).fingerprint == many.take(chosen).fingerprint


def test_one_reading_and_a_slice_are_readings_too(many):
    assert many.take(3).points.shape == (1, 2)
    assert many.take(np.int64(3)).fingerprint == many.take([3]).fingerprint
    assert many.take(slice(2, 5)).fingerprint == many.take([2, 3, 4]).fingerprint
    assert many.take([3]).sensor.tolist() == ["s3"]


def test_taking_without_sigma_and_sensor(problem):
    taken = observe(problem, POINTS, VALUES).take([2, 0])
    assert (taken.sigma, taken.sensor) == (None, None)
    np.testing.assert_array_equal(taken.values, VALUES[[2, 0]])


# -- fingerprints -----------------------------------------------------------------------------


def test_a_fingerprint_follows_every_part(problem):
    def print_of(points=POINTS, values=VALUES, quantities=None, **rest):
        return observe(problem, points, values, quantities, **rest).fingerprint

    moved, other = POINTS.copy(), VALUES.copy()
    moved[0, 0], other[0, 0] = 1e-12, 1.0 + 1e-12
    prints = [
        print_of(),
        print_of(moved),
        print_of(values=other),
        print_of(quantities=["v", "u"]),
        print_of(sigma=1.0),
        print_of(sigma=2.0),
        print_of(sensor=[1.0, 1.0, 1.0]),
        print_of(sensor=["a", "b", "c"]),
        print_of(sensor=["a", "b", "d"]),
        print_of(POINTS[::-1]),
        print_of(POINTS[:2], VALUES[:2]),
    ]
    assert len(set(prints)) == len(prints)
    assert print_of() == prints[0]
    assert print_of(POINTS.tolist(), np.asfortranarray(VALUES)) == prints[0]


def test_sensors_of_any_type_have_a_fingerprint(problem):
    one, same, other = (
        observe(problem, POINTS, VALUES, sensor=np.array(names, object)).fingerprint
        for names in (["a", 1, None], ["a", 1, None], ["a", 2, None])
    )
    assert one == same != other
