"""Which column is what, in which unit, with which error, from which sensor."""

from __future__ import annotations

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.readings import read_with_report


def test_columns_are_found_by_name_with_or_without_a_unit(rod, write):
    path = write("sensor_id,t [min],x (mm),T [degF],flux\nA,1,500,212,1\n7,2,1500,32,2\n")
    units = {"x": "m", "t": "s", "T": "degC", "k": "m^2/s"}
    found, report = read_with_report(path, rod, units=units)
    np.testing.assert_allclose(found.points, [[0.5, 60], [1.5, 120]])
    np.testing.assert_allclose(found.values, [[100, 1], [0, 2]], atol=1e-12)
    assert found.sensor is not None and found.sensor.tolist() == ["A", "7"]
    assert report.units["x"] == "mm -> m"
    assert "7" in found.sensor and report.sensors == 2


def test_columns_of_other_names_are_told(rod, write):
    path = write("place,when,reading,err,channel\n0.5,1,20,0.1,a\n0.6,2,21,0.2,b\n")
    columns = {"x": "place", "t": "when", "T": "reading"}
    found, _ = read_with_report(path, rod, columns, sigma="err", sensor="channel")
    assert found.values.ravel().tolist() == [20, 21]
    assert found.sigma is not None and found.sigma.tolist() == [0.1, 0.2]
    assert found.sensor is not None and found.sensor.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("unit", "wanted"),
    [("mm -> m", 0.5), (1e-3, 0.5), ((1e-3, 0.25), 0.75), ([0.001, 0], 0.5)],
)
def test_a_conversion_can_be_told_in_four_ways(unit, wanted, rod, write):
    path = write("x,t,T\n500,1,20\n600,2,21\n")
    found, _ = read_with_report(path, rod, units={"x": unit})
    assert found.points[0, 0] == pytest.approx(wanted)


def test_sigma_is_converted_with_its_quantity_but_without_the_offset(rod, write):
    path = write("x,t,T [degF],sigma\n0.5,1,212,9\n0.6,2,32,1.8\n")
    found, _ = read_with_report(path, rod, units={"T": "degC"})
    assert found.sigma is not None
    np.testing.assert_allclose(found.sigma, [5.0, 1.0])


def test_numbers_as_sensor_names_carry_no_decimal_point(rod, write):
    # One missing cell makes pandas read the others as 1.0 and 2.0.
    path = write("sensor,x,t,T\n1,0.5,1,20\n2,0.6,2,21\n,0.7,3,22\n")
    found, report = read_with_report(path, rod)
    assert found.sensor is not None and found.sensor.tolist() == ["1", "2", ""]
    assert any("name no sensor" in note for note in report.notes)


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("x,T\n1,2\n", {}, "no column for the coordinate 't'"),
        ("x,t,Temp\n1,2,3\n", {}, "no column for any of T, flux"),
        ("x,t,T\n1,2,3\n", {"columns": {"T": "temp"}}, "no column 'temp'"),
        ("x,t,T\n1,2,3\n", {"columns": {"y": "x"}}, "'y' is no coordinate"),
        ("x,t,T\n1,2,3\n", {"sigma": "s"}, "no column 's'"),
        ("x,t,T\n1,2,3\n", {"sensor": "s"}, "no column 's' of sensor"),
        ("x,t,T [mm],T [m]\n1,2,3,4\n", {}, "several columns for 'T'"),
        ("x,t,T,T\n1,2,3,4\n", {}, "two columns 'T'"),
        ("x [mm],t,T\n1,2,3\n", {"units": {"x": "s"}}, "they measure other things"),
        ("x [mm],t,T\n1,2,3\n", {"units": {"x": "cm -> m"}}, "the file says 'mm' but"),
        ("x,t,T\n1,2,3\n", {"units": {"x": 0}}, "a factor other than zero"),
        ("x,t,T\n1,2,3\n", {"units": {"x": "furlong"}}, "the unit 'furlong' is not known"),
        ("x,t,T\n1,2,3\n", {"origin": "2024-05-01"}, "holds no timestamps"),
        ("x,t,T,sigma\n1,2,3,0\n", {}, "sigma must be finite and above zero"),
    ],
)
def test_what_cannot_be_matched_is_one_sentence(text, options, sentence, rod, write):
    with pytest.raises(UserError, match=sentence) as found:
        read_with_report(write(text), rod, **options)
    assert "\n" not in str(found.value)
