"""Exact cases and laws of the errors of fields and unknowns."""

import time

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from unpinn._errors import UserError
from unpinn.evaluation import (
    field_errors,
    maximum_error,
    mean_shifted,
    mean_square,
    relative_l1,
    relative_l2,
    scalar_errors,
)

# Zero or of a sensible size: squares of the tiniest floats vanish and prove nothing.
VALUES = st.floats(-1e3, 1e3).map(lambda value: value if abs(value) > 1e-3 else 0.0)
MEASURES = [relative_l2, relative_l1, mean_square, maximum_error]


@st.composite
def pairs(draw, minimum=1):
    shape = draw(array_shapes(max_dims=2, min_side=minimum, max_side=6))
    return draw(arrays(float, shape, elements=VALUES)), draw(arrays(float, shape, elements=VALUES))


def test_the_measures_on_a_case_done_by_hand():
    prediction, truth = np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    errors = field_errors(prediction, truth)
    assert errors == pytest.approx(
        {
            "l2re": np.sqrt(17 / 5),
            "l1re": 7 / 3,
            "mse": 17 / 4,
            "max_error": 3.0,
            "rms_truth": np.sqrt(5 / 4),
        }
    )


@given(pairs())
def test_the_mean_error_is_at_most_the_root_mean_square_and_that_at_most_the_maximum(pair):
    prediction, truth = pair
    mean = np.abs(prediction - truth).mean()
    root = np.sqrt(mean_square(prediction, truth))
    assert mean <= root * (1 + 1e-12)
    assert root <= maximum_error(prediction, truth) * (1 + 1e-12)


@given(pairs())
def test_the_keys_agree_with_the_functions_and_hang_together(pair):
    prediction, truth = pair
    errors = field_errors(prediction, truth)
    assert errors["mse"] == mean_square(prediction, truth)
    assert errors["max_error"] == maximum_error(prediction, truth)
    if truth.any():
        assert errors["l2re"] == pytest.approx(relative_l2(prediction, truth))
        assert errors["l1re"] == pytest.approx(relative_l1(prediction, truth))
        assert errors["mse"] == pytest.approx((errors["l2re"] * errors["rms_truth"]) ** 2)
    else:
        assert errors["l2re"] is None and errors["l1re"] is None


@given(pairs(), st.sampled_from([-8.0, -0.5, 3.0, 1e4]))
def test_relative_errors_do_not_know_the_unit(pair, unit):
    prediction, truth = pair
    if not truth.any():
        truth = truth + 1.0
    for measure in (relative_l2, relative_l1):
        scaled = measure(unit * prediction, unit * truth)
        assert scaled == pytest.approx(measure(prediction, truth), rel=1e-9)


@given(pairs())
def test_absolute_measures_are_symmetric_and_vanish_only_for_equals(pair):
    first, second = pair
    for measure in (mean_square, maximum_error):
        assert measure(first, second) == measure(second, first)
        assert (measure(first, second) == 0) == np.array_equal(first, second)


@given(pairs(), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_mean_shifted_forgets_any_constant(pair, first, second):
    prediction, truth = pair
    plain = mean_shifted(prediction, truth)
    moved = mean_shifted(prediction + first, truth + second)
    for one, other in zip(plain, moved, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
        assert one.mean() == pytest.approx(0, abs=1e-9)


def test_mean_shifted_by_group_forgets_a_constant_in_each():
    times = np.repeat([0.0, 0.1, 0.2], 4)
    truth = np.sin(np.arange(12.0))
    prediction = truth + np.repeat([5.0, -3.0, 1.0], 4)
    assert relative_l2(*mean_shifted(prediction, truth, groups=times)) < 1e-14
    assert relative_l2(*mean_shifted(prediction, truth)) > 1


def test_mean_shifted_of_a_vector_shifts_each_component_by_its_own():
    truth = np.arange(12.0).reshape(6, 2) ** 2
    prediction = truth + np.array([3.0, -4.0])
    assert relative_l2(*mean_shifted(prediction, truth, vector=True)) < 1e-14
    assert relative_l2(*mean_shifted(prediction, truth)) > 0.05


def test_scalar_errors():
    assert scalar_errors(0.5, 2.0) == {"absolute": 1.5, "squared": 2.25, "relative": 0.75}
    assert scalar_errors(np.array([-0.5]), 0.0) == {
        "absolute": 0.5,
        "squared": 0.25,
        "relative": None,
    }


def test_arrays_of_another_framework_are_measured_too():
    assert relative_l2(jnp.array([3.0, 5.0]), np.array([3.0, 4.0])) == pytest.approx(0.2)


def test_a_field_in_rows_is_the_field_on_its_grid():
    rng = np.random.default_rng(0)
    prediction, truth = rng.normal(size=(2, 9, 10, 3, 2))
    on_grid = field_errors(prediction, truth, grid_shape=(9, 10, 3))
    in_rows = field_errors(prediction.reshape(-1, 2), truth.reshape(-1, 2), (9, 10, 3))
    assert on_grid == in_rows
    points = 9 * 10
    assert on_grid["fmse_low"] == pytest.approx(points * on_grid["fmse_low_normalised"])


def test_a_line_has_no_two_dimensional_spectrum():
    assert "fmse_low" not in field_errors(np.ones(5), np.ones(5), grid_shape=(5,))


@pytest.mark.parametrize("measure", [*MEASURES, mean_shifted, field_errors])
@pytest.mark.parametrize(
    ("prediction", "truth", "sentence"),
    [
        (np.ones((3, 1)), np.ones(3), r"truth has shape \(3,\) but prediction has \(3, 1\)"),
        ([1.0, np.nan], [1.0, 1.0], "prediction has 1 of 2 values NaN or infinite"),
        ([1.0, 1.0], [np.inf, np.nan], "truth has 2 of 2 values NaN or infinite"),
        ([], [], "prediction is empty"),
        ([1j], [1.0], "prediction is complex"),
        (["a"], [1.0], "prediction cannot be read"),
        (np.ma.masked_less([0.0, 1.0], 0.5), [1.0, 1.0], "prediction has masked entries"),
    ],
)
def test_bad_arrays_are_refused_by_name(measure, prediction, truth, sentence):
    with pytest.raises(UserError, match=sentence):
        measure(prediction, truth)


@pytest.mark.parametrize("measure", [relative_l2, relative_l1])
def test_a_relative_error_to_nothing_is_refused(measure):
    with pytest.raises(UserError, match="zero everywhere"):
        measure([1.0], [0.0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: field_errors(np.ones(5), np.ones(5), (2, 3)), "not the grid"),
        (lambda: field_errors(np.ones(6), np.ones(6), (2, -3)), "positive whole number"),
        (lambda: field_errors(np.ones(6), np.ones(6), ()), "positive whole number"),
        (lambda: scalar_errors([1.0, 2.0], 1.0), "estimate has 2 values"),
        (lambda: mean_shifted([1.0], [1.0], vector=True), "no axis of components"),
        (lambda: mean_shifted([1.0, 2.0], [1.0, 2.0], groups=[0]), "one label for each"),
    ],
)
def test_impossible_requests_are_refused_in_one_sentence(call, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_the_largest_grid_is_measured_within_a_second():
    rng = np.random.default_rng(0)
    prediction, truth = rng.normal(size=(2, 345_000, 3))
    seconds = []
    for _ in range(3):
        # Processor time, for the machine may be busy with something else.
        start = time.process_time()
        field_errors(prediction, truth, grid_shape=(100, 50, 69))
        field_errors(*mean_shifted(prediction, truth, vector=True))
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1
