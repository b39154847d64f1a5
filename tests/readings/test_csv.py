"""CSV as instruments, spreadsheets and people write it: the same numbers come out."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from unpinn.readings import read_with_report

PLAIN = "x,t,T\n0.5,0,20.25\n1.5,60,21.5\n"

SPELLINGS = {
    "commas": PLAIN,
    "semicolons": PLAIN.replace(",", ";"),
    "tabs": PLAIN.replace(",", "\t"),
    "bars": PLAIN.replace(",", "|"),
    "blanks": PLAIN.replace(",", "   "),
    "commas as decimal marks": PLAIN.replace(",", ";").replace(".", ","),
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "no last line end": PLAIN.rstrip(),
    "comments first": "# logger 7\n\n# µ\n" + PLAIN,
    "a byte-order mark": "\ufeff" + PLAIN,
    "blanks after commas": PLAIN.replace(",", ", "),
    "quotation marks": 'x,"t","T"\n"0.5",0,20.25\n1.5,"60",21.5\n',
    "an empty line between": PLAIN.replace("\n1.5", "\n\n1.5"),
    "exponents": "x,t,T\n5e-1,0,2.025E1\n1.5,+6e1,21.5\n",
    "other columns": "x,note,t,T\n0.5,fine,0,20.25\n1.5,windy,60,21.5\n",
    "missing cells of every kind": PLAIN + "1,1,\n1,2,NaN\n1,3,-\n1,4,N/A\n1,5,null\n",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_reads_as_the_same_numbers(spelling, rod, write):
    path = write(SPELLINGS[spelling])
    observations, report = read_with_report(path, rod)
    np.testing.assert_array_equal(observations.points, [[0.5, 0.0], [1.5, 60.0]])
    np.testing.assert_array_equal(observations.values, [[20.25], [21.5]])
    assert report.rows == report.kept + report.rows_dropped


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_encodings(encoding, rod, write):
    text = "sensor,x,t,T [°C]\nMühle,0.5,0,20.25\nZürich,1.5,60,21.5\n"
    observations, _ = read_with_report(write(text.encode(encoding)), rod)
    assert observations.sensor is not None
    assert observations.sensor.tolist() == ["Mühle", "Zürich"]


def test_compressed_files_are_read(rod, write):
    path = write(gzip.compress(PLAIN.encode()), "sensors.csv.gz")
    observations, _ = read_with_report(path, rod)
    assert observations.values.ravel().tolist() == [20.25, 21.5]


def test_a_text_for_missing_values_can_be_told(rod, write):
    path = write(PLAIN + "1.0,70,-9999\n")
    assert len(read_with_report(path, rod)[0]) == 3
    observations, report = read_with_report(path, rod, missing=["-9999"])
    assert len(observations) == 2
    assert report.dropped[0].first == (4,)


def test_a_cell_beyond_the_first_chunk_is_named_by_its_line(rod, write):
    from unpinn._errors import UserError
    from unpinn.readings._tables import CHUNK

    count = CHUNK + 10
    body = [f"1.0,{60 + n / count},20.5" for n in range(count)]
    body[CHUNK + 4] = "1.0,61,2O.5"
    with pytest.raises(UserError, match=rf"line {CHUNK + 6}, column 'T': '2O.5' is not a number"):
        read_with_report(write("x,t,T\n" + "\n".join(body)), rod)


def test_timestamps_are_counted_from_the_first_or_from_an_origin(rod, write):
    stamps = "time,x,T\n2024-05-01T12:00:10Z,0.5,20\n2024-05-01 12:01:00+00:00,0.6,21\n"
    path = write(stamps)
    told = {"columns": {"t": "time"}, "units": {"t": "s"}}
    assert read_with_report(path, rod, **told)[0].points[:, 1].tolist() == [0.0, 50.0]
    observations, report = read_with_report(path, rod, **told, origin="2024-05-01T12:00")
    assert observations.points[:, 1].tolist() == [10.0, 60.0]
    assert any("2024-05-01T12:00:00" in note for note in report.notes)
    minutes = read_with_report(path, rod, columns={"t": "time"}, units={"t": "min"})[0]
    np.testing.assert_allclose(minutes.points[:, 1], [0.0, 50 / 60])
