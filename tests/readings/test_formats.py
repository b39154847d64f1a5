"""Every format holds every reading: what is written is read back the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unpinn._errors import UserError
from unpinn.problem import observe
from unpinn.readings import read_observations, read_with_report, write_observations
from unpinn.readings._tables import open_table

COUNT = 40


def readings(rod):
    random = np.random.default_rng(2)
    values = random.standard_normal((COUNT, 2))
    values[::3, 1] = np.nan
    points = {"x": random.uniform(0, 2, COUNT), "t": random.uniform(0, 3600, COUNT)}
    names = np.array([f"no {n % 4}, µ" for n in range(COUNT)])
    return observe(rod, points, values, ("T", "flux"), random.uniform(0.1, 1, COUNT), names)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz", ".nc"])
@pytest.mark.parametrize("units", [{}, {"x": "m", "T": "degC"}], ids=["plain", "with units"])
def test_a_file_written_is_read_back_exactly(ending, units, rod, tmp_path):
    given = readings(rod)
    path = write_observations(tmp_path / f"readings{ending}", given, rod, units)
    found, report = read_with_report(path, rod, units=units)
    np.testing.assert_array_equal(found.points, given.points)
    np.testing.assert_array_equal(found.values, given.values)
    np.testing.assert_array_equal(found.sigma, given.sigma)
    assert found.sensor is not None and given.sensor is not None
    assert found.sensor.tolist() == given.sensor.tolist()
    assert report.missing == {"T": 0, "flux": len(given.values[::3])}
    assert report.sensors == 4
    if units:
        # The file itself tells its units: another unit for the problem converts.
        converted, _ = read_with_report(path, rod, units={"x": "m", "T": "K"})
        np.testing.assert_allclose(converted.values[:, 0], given.values[:, 0] + 273.15)
    with pytest.raises(UserError, match="exists"):
        write_observations(path, given, rod)
    assert path.stat().st_size > 0


def test_a_data_frame_is_read_like_a_file(rod):
    frame = pd.DataFrame({"x": [0.1, 0.2], "t": [1, 2], "T": [3.0, None], "flux": [None, 4.0]})
    observations = read_observations(frame, rod)
    np.testing.assert_array_equal(observations.values, [[3.0, np.nan], [np.nan, 4.0]])


def test_a_gridded_dataset_is_unrolled(rod):
    import xarray

    field = np.arange(12.0).reshape(3, 4)
    dataset = xarray.Dataset(
        {"T": (("t", "x"), field, {"units": "degC"})},
        {"t": ("t", [0.0, 1, 2], {"units": "min"}), "x": ("x", [0.0, 0.5, 1, 1.5])},
    )
    observations, report = read_with_report(dataset, rod, units={"t": "s"})
    assert len(observations) == 12
    for (x, t), value in zip(observations.points, observations.values[:, 0], strict=True):
        assert value == field[round(t / 60), round(x / 0.5)]
    assert report.units["t"] == "min -> s"


def test_python_objects_in_an_archive_are_never_loaded(rod, tmp_path):
    path = tmp_path / "bad.npz"
    np.savez(path, x=np.array([{}, {}], dtype=object))
    with pytest.raises(UserError, match="holds Python objects, which are never loaded"):
        read_with_report(path, rod)


@pytest.mark.parametrize("ending", [".parquet", ".npz", ".nc"])
def test_a_damaged_file_is_refused_in_one_sentence(ending, rod, tmp_path):
    path = write_observations(tmp_path / f"readings{ending}", readings(rod), rod)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=rf"readings\{ending}") as found:
        read_with_report(path, rod)
    assert "\n" not in str(found.value)


def test_a_parquet_file_with_a_name_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "readings.parquet"
    pd.DataFrame({"x": [1.0], "temperature": [2.0]}).to_parquet(path)
    # The name stands in the file's own list of columns and in the schema that pandas adds.
    path.write_bytes(path.read_bytes().replace(b"temperature", b"temp\xe9rature"))
    with pytest.raises(UserError, match="is not a readable Parquet file"):
        open_table(path)
