"""Exact cases and laws of the spectral errors."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpinn._errors import UserError
from unpinn.evaluation import BANDS, field_errors, power_spectrum, spectral_errors

VALUES = st.floats(-100, 100)


def counted_modes(columns, rows):
    """How many wave numbers each band has, counted one by one in whole numbers."""
    found = dict.fromkeys(BANDS, 0)
    for i, j in itertools.product(range(columns), range(rows)):
        square = min(i, columns - i) ** 2 + min(j, rows - j) ** 2
        for name, (lowest, highest) in BANDS.items():
            found[name] += lowest**2 <= square <= highest**2
    return found


@st.composite
def grids(draw):
    shape = draw(st.tuples(*[st.integers(1, 9)] * 2, st.integers(1, 3), st.integers(1, 2)))
    return draw(arrays(float, shape, elements=VALUES))


@given(grids())
def test_parseval(error):
    power, radius = power_spectrum(error, vector=True)
    points = error.shape[0] * error.shape[1]
    assert power.shape == radius.shape == error.shape[:2]
    assert power.sum() == pytest.approx(points**2 * np.mean(error**2), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", [(200, 200), (60, 60, 50), (100, 50, 7), (33, 27)])
def test_the_bands_and_the_gaps_between_them_hold_the_whole_error(shape):
    error = np.random.default_rng(1).normal(size=shape)
    points = shape[0] * shape[1]
    power, radius = power_spectrum(error)
    gaps = ((radius > 4) & (radius < 5)) | ((radius > 12) & (radius < 13))
    bands = spectral_errors(error)._asdict()
    modes = counted_modes(*shape[:2])
    inside = sum(modes[name] * bands[name] ** 2 for name in BANDS)
    assert inside + power[gaps].sum() == pytest.approx(points**2 * np.mean(error**2))
    assert sum(modes.values()) + gaps.sum() == points


@pytest.mark.parametrize(
    ("wave", "band", "modes"),
    [
        ((0, 0), "low", 1),
        ((4, 0), "low", 2),
        ((2, 3), "low", 2),
        ((5, 0), "mid", 2),
        ((3, 4), "mid", 2),
        ((0, 12), "mid", 2),
        ((5, 12), "high", 2),
        ((13, 0), "high", 2),
        ((3, 3), None, 2),
        ((9, 8), None, 2),
    ],
)
def test_a_single_wave_is_found_in_its_band_only(wave, band, modes):
    columns, rows = 40, 48
    x, y = np.arange(columns) / columns, np.arange(rows) / rows
    error = np.cos(2 * np.pi * (wave[0] * x[:, None] + wave[1] * y[None, :]))
    height = columns * rows / modes
    number = counted_modes(columns, rows)
    for name, value in spectral_errors(error)._asdict().items():
        expected = height * math.sqrt(modes / number[name]) if name == band else 0.0
        assert value == pytest.approx(expected, abs=1e-9)


def test_a_constant_error_is_one_of_the_49_low_wave_numbers():
    low, mid, high = spectral_errors(np.full((100, 100), 0.3))
    assert low == pytest.approx(0.3 * 100 * 100 / 7)
    assert (mid, high) == pytest.approx((0, 0), abs=1e-9)


def test_the_normalised_low_band_does_not_depend_on_the_grid():
    def error(points):
        x = np.arange(points) / points
        return 1 + np.sin(2 * np.pi * (x[:, None] + 3 * x)) + np.cos(2 * np.pi * 9 * x[:, None])

    coarse = spectral_errors(error(50), normalised=True)
    fine = spectral_errors(error(200), normalised=True)
    assert coarse[:2] == pytest.approx(fine[:2])
    assert spectral_errors(error(200)).low == pytest.approx(200**2 * fine.low)
    assert spectral_errors(error(200)).low == pytest.approx(16 * spectral_errors(error(50)).low)


def test_times_and_components_are_averaged_as_squares():
    rng = np.random.default_rng(2)
    planes = rng.normal(size=(30, 30, 4))
    each = np.array([spectral_errors(planes[..., k]) for k in range(4)])
    together = np.sqrt(np.mean(each**2, axis=0))
    np.testing.assert_allclose(spectral_errors(planes), together)
    np.testing.assert_allclose(spectral_errors(planes, vector=True), together)
    np.testing.assert_allclose(spectral_errors(planes.reshape(30, 30, 2, 2), vector=True), together)


@given(grids(), st.sampled_from([-3.0, 0.25, 8.0]))
def test_spectral_errors_are_homogeneous_and_ignore_the_order_of_axes(error, factor):
    plain = spectral_errors(error, vector=True)
    scaled = spectral_errors(factor * error, vector=True)
    turned = spectral_errors(np.swapaxes(error, 0, 1), vector=True)
    for one, many, other in zip(plain, scaled, turned, strict=True):
        if one is None:
            assert many is None and other is None
        else:
            assert many == pytest.approx(abs(factor) * one, rel=1e-9, abs=1e-9)
            assert other == pytest.approx(one, rel=1e-9, abs=1e-9)


def test_a_band_that_the_grid_cannot_hold_is_none():
    assert spectral_errors(np.ones((4, 4))) == (pytest.approx(16 / math.sqrt(16)), None, None)
    errors = field_errors(np.ones(16), np.zeros(16), grid_shape=(4, 4))
    assert errors["fmse_mid"] is None and errors["fmse_mid_normalised"] is None


@pytest.mark.parametrize(
    ("error", "vector"), [(np.ones(4), False), (np.ones((2, 2)), True), (np.ones([2] * 4), False)]
)
def test_an_error_that_is_not_on_a_grid_is_refused(error, vector):
    with pytest.raises(UserError, match="arrange it as"):
        spectral_errors(error, vector=vector)
