"""Measurements: derivatives of fields, and averages around the point by quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpinn._errors import UserError
from unpinn.problem import Derivative, Measurement, Problem

XYT = ("x", "y", "t")


def value(u):
    return u


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
@pytest.mark.parametrize("width", [1e-6, 0.3, 40.0])
def test_a_footprint_averages_polynomials_exactly(nodes, width):
    measurement = Measurement(value, {"y": width}, nodes=nodes)
    offsets, weights = measurement.offsets(XYT), measurement.weights(XYT)
    assert offsets.shape == (nodes, 3)
    assert (offsets[:, [0, 2]] == 0).all()
    for degree in range(2 * nodes):
        # The mean of y^k over [-w/2, w/2] is (w/2)^k / (k+1) for even k and zero for odd k.
        exact = (width / 2) ** degree / (degree + 1) if degree % 2 == 0 else 0.0
        found = weights @ offsets[:, 1] ** degree
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-15 * (width / 2) ** degree)


def test_one_degree_more_is_not_exact():
    measurement = Measurement(value, {"x": 2.0}, nodes=2)
    assert measurement.weights(("x",)) @ measurement.offsets(("x",))[:, 0] ** 4 != 1 / 5


@given(
    st.dictionaries(st.sampled_from(XYT), st.floats(1e-3, 1e3), min_size=1),
    st.integers(1, 4),
    st.lists(st.integers(0, 7), min_size=3, max_size=3),
)
def test_several_averaged_coordinates_multiply(footprint, nodes, degrees):
    measurement = Measurement(value, footprint, nodes)
    offsets, weights = measurement.offsets(XYT), measurement.weights(XYT)
    assert len(offsets) == len(weights) == nodes ** len(footprint)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert (weights > 0).all()
    exact, found = 1.0, np.ones(len(offsets))
    for name, degree, column in zip(XYT, degrees, offsets.T, strict=True):
        degree %= 2 * nodes
        half = footprint.get(name, 0.0) / 2
        exact *= half**degree / (degree + 1) if degree % 2 == 0 and half else float(degree == 0)
        found = found * column**degree
    size = np.abs(found).max()
    assert weights @ found == pytest.approx(exact, rel=1e-11, abs=1e-13 * size)


@given(st.floats(1e-3, 1e3))
def test_nodes_stay_within_the_footprint(width):
    offsets = Measurement(value, {"t": width}, nodes=6).offsets(XYT)[:, 2]
    assert np.abs(offsets).max() < width / 2
    np.testing.assert_allclose(offsets, -offsets[::-1], atol=1e-15 * width)


def test_without_a_footprint_the_point_itself_is_read():
    measurement = Measurement(value)
    np.testing.assert_array_equal(measurement.offsets(XYT), [[0, 0, 0]])
    np.testing.assert_array_equal(measurement.weights(XYT), [1])


@pytest.mark.parametrize("width", [0.0, -1, math.nan, math.inf])
def test_a_footprint_is_a_finite_width(width):
    with pytest.raises(UserError, match="footprint in 'x' must be a finite width above zero"):
        Measurement(value, {"x": width})


def test_a_rule_has_nodes():
    with pytest.raises(UserError, match="one quadrature node or more"):
        Measurement(value, {"x": 1.0}, nodes=0)


def test_a_footprint_in_no_coordinate_is_told():
    with pytest.raises(UserError, match=r"averaged over 'z', which is no coordinate \(x, y, t\)"):
        Measurement(value, {"z": 1.0}).offsets(XYT)


# -- within a problem -------------------------------------------------------------------------


def problem(**measurements):
    return Problem(
        coordinates={"x": (0, 1), "t": (0, 1)},
        fields=["u"],
        equations={"e": lambda u: u.t},
        measurements=measurements,
    )


def test_a_function_becomes_a_measurement_and_fields_are_measured_as_they_are():
    stated = problem(acceleration=lambda u: u.tt, gauge=Measurement(lambda u: u.x, {"x": 0.1}))
    assert isinstance(stated.measurements["acceleration"], Measurement)
    assert stated.measurements["gauge"].footprint == {"x": 0.1}
    read = {name: e.derivatives for name, e in stated.measured_expressions.items()}
    assert read == {
        "u": {Derivative("u", (0, 0))},
        "acceleration": {Derivative("u", (0, 2))},
        "gauge": {Derivative("u", (1, 0))},
    }


def test_a_mistake_in_a_measurement_names_it():
    with pytest.raises(UserError, match=r"measurement 'gauge': u\.y is not a derivative"):
        problem(gauge=lambda u: u.y)
    with pytest.raises(UserError, match="measurement 'u' has a name that is taken"):
        problem(u=lambda u: 2 * u)
