"""Rows that cannot be used are left out, each for one reason, and the report says which."""

from __future__ import annotations

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.readings import ReadingWarning, read_observations, read_with_report

MESSY = """\
sensor,x,t,T,flux
A,0.5,10,20,
A,0.5,10,22,
B,0.5,10,23,
A,,20,24,
A,0.6,,25,
A,0.7,30,,
A,0.8,40,,1.5
A,2.5,50,26,
"""


def test_every_row_is_read_or_accounted_for(rod, write):
    found, report = read_with_report(write(MESSY), rod, outside="drop")
    assert found.points.tolist() == [[0.5, 10], [0.5, 10], [0.8, 40]]
    np.testing.assert_array_equal(found.values, [[20, np.nan], [23, np.nan], [np.nan, 1.5]])
    assert report.rows == 8 and report.kept == 3 and report.rows_dropped == 5
    lines = {number: entry.reason for entry in report.dropped for number in entry.first}
    assert set(lines) == {3, 5, 6, 7, 9}
    assert "'x'" in lines[5] and "'t'" in lines[6]
    assert "no value" in lines[7] and "repeats" in lines[3] and "outside" in lines[9]
    assert report.missing == {"T": 1, "flux": 2}
    told = report.text()
    assert "3 readings from 8 rows of 2 sensors" in told and "line 9" in told


def test_rows_left_out_are_warned_of(rod, write):
    path = write(MESSY)
    with pytest.warns(ReadingWarning, match="5 of 8 rows were left out"):
        read_observations(path, rod, outside="drop")


@pytest.mark.parametrize(
    ("duplicates", "temperatures"),
    [("first", [20, 23]), ("average", [21, 23]), ("keep", [20, 22, 23])],
)
def test_duplicates(duplicates, temperatures, rod, write):
    path = write("\n".join(MESSY.splitlines()[:4]))
    found, _ = read_with_report(path, rod, duplicates=duplicates)
    assert found.values[:, 0].tolist() == temperatures


def test_averages_are_of_what_is_there_and_their_errors_shrink(rod, write):
    text = "sensor,x,t,T,flux,sigma\nA,1,1,20,,0.3\nA,1,1,22,5,0.3\nA,1,1,,7,0.3\nA,1,2,9,9,0.3\n"
    found, _ = read_with_report(write(text), rod, duplicates="average")
    assert found.values.tolist() == [[21, 6], [9, 9]]
    assert found.sigma is not None
    np.testing.assert_allclose(found.sigma, [0.3 / np.sqrt(2), 0.3])


def test_without_sensors_the_same_place_with_another_value_is_another_reading(rod, write):
    path = write("x,t,T\n1,1,20\n1,1,21\n1,1,20\n")
    found, _ = read_with_report(path, rod)
    assert found.values.ravel().tolist() == [20, 21]


def test_readings_outside_are_refused_with_the_line_and_the_domain(rod, write):
    with pytest.raises(
        UserError, match=r"outside the domain, first in line 9 \(x = 2\.5, domain \[0, 2\]"
    ):
        read_with_report(write(MESSY), rod)


def test_a_reading_outside_by_rounding_belongs_to_the_edge(rod, write):
    path = write("x,t,T\n2.0000000001,1,20\n-1e-12,3600.0000001,21\n")
    found, _ = read_with_report(path, rod)
    np.testing.assert_allclose(found.points, [[2.0, 1.0], [0.0, 3600.0]], atol=1e-6)
