"""The tables of suspects: a row a reading, a row a sensor, and what a spreadsheet makes of them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from unpinn._errors import UserError
from unpinn.report import (
    sensor_sentences,
    sensors_table,
    suspects_table,
    warnings_of,
    write_report,
    write_suspects,
)

COLUMNS = [
    "reading", "sensor", "x", "t", "u", "u_predicted", "slope", "slope_predicted", "misfit",
    "residual", "score", "posterior", "weight", "retained",
]  # fmt: skip


def test_every_reading_has_a_row_that_says_what_the_fit_knows(reported):
    fit, table = reported.fit, suspects_table(reported.fit)
    assert list(table.columns) == COLUMNS and sorted(table.reading) == list(range(120))
    rows = table.reading.to_numpy()
    observations, found = fit.observations, fit.partition
    np.testing.assert_array_equal(table[["x", "t"]], observations.points[rows])
    np.testing.assert_array_equal(table[["u", "slope"]], observations.values[rows])
    np.testing.assert_array_equal(table.sensor, observations.sensor[rows])
    np.testing.assert_array_equal(table.retained, found.retained[rows])
    for name in ("score", "posterior", "weight", "residual"):
        np.testing.assert_array_equal(table[name], getattr(found, name)[rows])
    misfits = fit.misfits()[rows]
    np.testing.assert_allclose(table.u_predicted - table.u, misfits[:, 0])
    np.testing.assert_allclose(table.misfit**2, np.nansum(misfits**2, axis=1))
    # The worst first: suspects before the others, each kind by its score.
    assert table.retained.is_monotonic_increasing
    for _, part in table.groupby("retained"):
        assert part.score.is_monotonic_decreasing
    suspects = suspects_table(fit, only_suspects=True)
    assert suspects.reading.tolist() == fit.suspects.tolist() and not suspects.retained.any()


def test_every_sensor_has_a_row_and_the_broken_one_comes_first(reported, hostile):
    table = sensors_table(reported.fit).set_index("sensor")
    assert table.index[0] == hostile and set(table.readings) == {24}
    assert table.suspect.sum() == reported.fit.partition.suspect.sum()
    np.testing.assert_allclose(table.share, table.suspect / 24)
    mine = reported.fit.observations.sensor == hostile
    misfits = reported.fit.misfits()[mine]
    assert table.bias_u.iloc[0] == np.median(misfits[:, 0]) < -3
    seen = misfits[~np.isnan(misfits[:, 1]), 1]
    assert table.typical_misfit_slope.iloc[0] == np.median(np.abs(seen))


def test_a_sensor_of_suspects_is_told_in_a_sentence(reported, hostile):
    share = sensors_table(reported.fit).share.iloc[0]
    sentences = sensor_sentences(reported.fit)
    assert sentences[0] == f"{hostile}: {share:.0%} of its 24 readings are suspect"
    assert f"Sensor {sentences[0]}." in [notice.text for notice in warnings_of(reported.fit)]
    assert sensor_sentences(reported.fit, least=1.0) == ()


def test_what_is_written_is_read_back(reported):
    written = pd.read_csv(reported.directory / "suspects.csv")
    table = suspects_table(reported.fit)
    assert list(written.columns) == COLUMNS
    for name in COLUMNS:
        if name != "sensor":
            np.testing.assert_allclose(written[name], table[name].astype(float), rtol=1e-8)
    assert set(written.retained) <= {True, False}
    sensors = pd.read_csv(reported.directory / "suspects-by-sensor.csv")
    assert sensors.readings.sum() == 120 and len(sensors) == 5


def test_no_cell_is_a_formula_to_a_spreadsheet(reported):
    for name in ("suspects.csv", "suspects-by-sensor.csv"):
        with (reported.directory / name).open(newline="") as file:
            rows = list(csv.DictReader(file))
        sensors = {row["sensor"] for row in rows}
        assert "'=A1" in sensors and "=A1" not in sensors and "Zürich" in sensors


def test_unknowns_are_written_with_interval_unit_and_what_was_before(reported):
    found = json.loads((reported.directory / "unknowns.json").read_text())
    speed = found["unknowns"]["speed"]
    assert speed["value"] == reported.fit.unknowns["speed"] and speed["unit"] == "m/s"
    assert speed["before"] == reported.fit.before.unknowns["speed"]
    low, high = speed["interval"]
    assert low < speed["value"] < high
    assert "90% intervals" in found["intervals"] and found["method"] == "ppinn"


@pytest.mark.parametrize("name", ["index.html", "suspects.csv", "unknowns.json"])
def test_a_report_writes_over_nothing_unasked(reported, tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match=f"{name} exists"):
        reported.fit.report(tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_a_report_leaves_the_data_beside_it_alone(reported, tmp_path):
    (tmp_path / "sensors.csv").write_text("mine")
    # Intervals and pages are tested elsewhere; a fit without scalars' intervals is quicker.
    page = write_report(reported.fit, tmp_path)
    assert (tmp_path / "sensors.csv").read_text() == "mine" and page.exists()


def test_a_fit_without_a_partition_retains_all(reported, tmp_path):
    plain = reported.fit.before
    table = suspects_table(plain)
    assert table.retained.all() and table.posterior.isna().all()
    assert table.score.is_monotonic_decreasing
    assert sensor_sentences(plain) == ()
    path = write_suspects(plain, tmp_path / "suspects.csv", only_suspects=True)
    assert path.read_text() == ",".join(COLUMNS) + "\n"


def test_without_sensors_or_readings_one_sentence_says_so(reported):
    bare = replace(reported.fit, observations=replace(reported.fit.observations, sensor=None))
    with pytest.raises(UserError, match="name no sensors"):
        sensors_table(bare)
    assert "sensor" not in suspects_table(bare)
    with pytest.raises(UserError, match="no readings"):
        suspects_table(replace(reported.fit, observations=None))


def test_an_unknown_that_had_not_come_to_rest_is_told_of(reported):
    fit = reported.fit
    end, before = fit.history["speed"][[-1, -1 - len(fit.history) // 5]]
    moved = abs(float(end - before))
    assert moved > 0
    for width, told in ((3 * moved, True), (5 * moved, False)):
        found = warnings_of(fit, {"speed": (float(end) - width / 2, float(end) + width / 2)})
        text = [notice.text for notice in found if "had not come to rest" in notice.text]
        assert bool(text) is told
        assert not told or (text[0].startswith("speed (m/s)") and "33%" in text[0])
    assert not any("come to rest" in notice.text for notice in warnings_of(fit))


def test_rounds_that_went_alike_share_a_row(reported):
    from dataclasses import replace

    from unpinn.report._facts import protocol_rows

    fit = reported.fit
    once = protocol_rows(fit)
    joined = replace(fit, history=fit.history.joined(fit.history).joined(fit.history))
    (training, earlier, last) = protocol_rows(joined)
    assert training == once[0] and last == once[1]
    assert (earlier["fit"], earlier["length"]) == ("unlearning", "80")
    assert earlier["settings"] == "in 2 rounds"
