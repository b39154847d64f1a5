"""Exact cases and laws of the calibration of intervals and Gaussian predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from unpinn._errors import UserError
from unpinn.evaluation import (
    LEVELS,
    coverage,
    coverage_bounds,
    expected_calibration_error,
    gaussian_coverage,
    gaussian_interval,
    gaussian_quality,
    interval_quality,
    interval_score,
    mean_width,
    negative_log_density,
    width_against_error,
)

NUMBERS = st.floats(-50, 50).map(lambda value: round(value, 3))
INTERVALS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=20).map(
    lambda rows: (
        np.array([min(row[:2]) for row in rows]),
        np.array([max(row[:2]) for row in rows]),
        np.array([row[2] for row in rows]),
    )
)


@pytest.fixture(scope="module")
def gaussian():
    rng = np.random.default_rng(3)
    mean, std = rng.normal(size=20_000), rng.uniform(0.1, 2, 20_000)
    return mean, std, mean + std * rng.normal(size=20_000)


def test_a_case_done_by_hand():
    quality = interval_quality([0.0, 1.0, 4.0], [2.0, 3.0, 6.0], [2.0, 0.0, 5.5], level=0.8)
    assert quality.coverage == pytest.approx(2 / 3)
    assert quality.mean_width == 2
    assert quality.mean_error == pytest.approx((1 + 2 + 0.5) / 3)
    assert quality.width_to_error == pytest.approx(2 / (3.5 / 3))
    assert quality.rank_correlation is None
    assert quality.score == pytest.approx(2 + (2 / 0.2) * 1 / 3)


@given(INTERVALS, st.floats(0, 10))
def test_wider_intervals_never_cover_less(intervals, margin):
    lower, upper, truth = intervals
    assert coverage(lower - margin, upper + margin, truth) >= coverage(lower, upper, truth)
    wider = mean_width(lower - margin, upper + margin)
    assert wider == pytest.approx(mean_width(lower, upper) + 2 * margin)


@given(INTERVALS)
def test_mirroring_changes_no_measure(intervals):
    lower, upper, truth = intervals
    mirrored = (-upper, -lower, -truth)
    assert coverage(*mirrored) == coverage(*intervals)
    assert interval_score(*mirrored) == pytest.approx(interval_score(*intervals))
    assert width_against_error(*mirrored) == width_against_error(*intervals)


@given(INTERVALS)
def test_the_score_is_at_least_the_width_and_equals_it_at_full_coverage(intervals):
    lower, upper, truth = intervals
    assert interval_score(lower, upper, truth) >= mean_width(lower, upper)
    inside = np.clip(truth, lower, upper)
    assert interval_score(lower, upper, inside) == mean_width(lower, upper)


def test_the_score_is_best_at_the_right_quantiles(gaussian):
    mean, std, truth = gaussian
    right = interval_score(*gaussian_interval(mean, std), truth)
    for factor in (0.7, 1.4):
        assert interval_score(*gaussian_interval(mean, factor * std), truth) > right


@given(INTERVALS)
def test_the_bounds_hold_the_observed_coverage(intervals):
    low, high = coverage_bounds(*intervals)
    assert 0 <= low <= coverage(*intervals) <= high <= 1
    narrower = coverage_bounds(*intervals, confidence=0.5)
    assert low <= narrower[0] and narrower[1] <= high


def test_the_bounds_of_no_hit_and_of_half():
    ones = np.ones(10)
    low, high = coverage_bounds(0 * ones, ones, 2 * ones)
    assert low == 0 and high == pytest.approx(1 - 0.025 ** (1 / 10))
    low, high = coverage_bounds(0 * ones, ones, np.arange(10) / 4.5)
    assert low == pytest.approx(1 - high) == pytest.approx(0.187086, abs=1e-6)


def test_right_intervals_are_recognised(gaussian):
    mean, std, truth = gaussian
    quality = interval_quality(*gaussian_interval(mean, std), truth, estimate=mean)
    assert quality.coverage == pytest.approx(0.9, abs=0.01)
    assert quality.width_to_error == pytest.approx(2 * norm.ppf(0.95) / np.sqrt(2 / np.pi), 0.03)
    assert quality.rank_correlation > 0.3


def test_the_direction_of_width_against_error():
    truth = np.arange(1.0, 6.0)
    width = 2 * truth
    assert width_against_error(-width / 2, width / 2, truth) == (2.0, pytest.approx(1))
    assert width_against_error(-width / 2, width / 2, truth[::-1])[1] == pytest.approx(-1)
    assert width_against_error([0.0], [2.0], [1.0]) == (None, None)
    assert width_against_error([0.0], [2.0], [1.0], estimate=[3.0]) == (1.0, None)


def test_right_gaussians_are_recognised_and_wrong_ones_are_not(gaussian):
    mean, std, truth = gaussian
    right = gaussian_quality(mean, std, truth)
    assert right.calibration_error < 0.01
    assert right.standardised_rms == pytest.approx(1, abs=0.02)
    for factor in (0.5, 2.0):
        wrong = gaussian_quality(mean, factor * std, truth)
        assert wrong.calibration_error > 0.1
        assert wrong.negative_log_density > right.negative_log_density
        assert wrong.standardised_rms == pytest.approx(right.standardised_rms / factor)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_curve_is_the_coverage_of_the_intervals(gaussian, level):
    mean, std, truth = gaussian
    direct = coverage(*gaussian_interval(mean, std, level=level), truth)
    assert gaussian_coverage(mean, std, truth, levels=[level])[0] == direct


def test_the_calibration_error_of_certainty_and_of_none():
    levels = np.array(LEVELS)
    exact = expected_calibration_error([1.0], [1.0], [1.0])
    assert exact == pytest.approx(np.mean(1 - levels))
    missed = expected_calibration_error([1.0], [1.0], [50.0])
    assert missed == pytest.approx(np.mean(levels))


@given(INTERVALS)
def test_the_density_is_that_of_scipy(intervals):
    mean, _, truth = intervals
    std = 0.5 + np.abs(mean)
    expected = -norm.logpdf(truth, mean, std).mean()
    assert negative_log_density(mean, std, truth) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: coverage([1.0, 2.0], [0.0, 3.0], [1.0, 1.0]), "lower is above upper in 1"),
        (lambda: coverage([0.0], [1.0, 2.0], [1.0]), "upper has shape"),
        (lambda: coverage([0.0], [1.0], [np.nan]), "truth has 1 of 1"),
        (lambda: mean_width([], []), "lower is empty"),
        (lambda: interval_score([0.0], [1.0], [1.0], level=1.0), "level is 1.0"),
        (lambda: negative_log_density([0.0], [0.0], [1.0]), "std has 1 values that are not"),
        (lambda: gaussian_coverage([0.0], [1.0], [1.0], levels=[]), "levels is empty"),
        (lambda: gaussian_coverage([0.0], [1.0], [1.0], levels=[0.5, 1.5]), "levels is 1.5"),
        (lambda: coverage_bounds([0.0], [1.0], [1.0], confidence=0.0), "confidence is 0.0"),
        (lambda: width_against_error([0.0], [1.0], [1.0], [1.0, 2.0]), "estimate has shape"),
    ],
)
def test_bad_input_is_refused_by_name(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()
