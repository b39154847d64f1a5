"""Fields on grids: NetCDF and VTK hold the numbers that the fit predicts, where it does."""

from __future__ import annotations

import base64
import struct
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.export import fields_on, full_grid, image_data, to_dataset, write_netcdf, write_vtk


def test_a_grid_covers_the_domain_in_the_coordinates_order(moving):
    places, points = full_grid(moving, {"t": 3, "x": 5})
    assert list(places) == ["x", "t"] and points.shape == (15, 2)
    np.testing.assert_array_equal(places["x"], [0.0, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_array_equal(points[:4], [[0, 1], [0, 2.5], [0, 4], [0.5, 1]])
    # One point lies in the middle.
    assert full_grid(moving, {"x": 1, "t": 2})[0]["x"].tolist() == [1.0]
    _, fields = fields_on(moving, {"x": 5, "t": 3}, ("u.x", "slope"))
    np.testing.assert_array_equal(fields["u.x"], fields["slope"])


def test_netcdf_is_read_back_as_the_fit_predicts(moving, tmp_path):
    import xarray

    path = write_netcdf(moving, tmp_path / "fit.nc", {"x": 5, "t": 3}, ("u", "v", "u.xx"))
    with xarray.open_dataset(path, engine="h5netcdf") as found:
        assert dict(found.sizes) == {"x": 5, "t": 3}
        for name, what in (("u", "u"), ("v", "v"), ("u_xx", "u.xx")):
            for x in (0, 3):
                for t in (0, 2):
                    place = found[name].isel(x=x, t=t)
                    point = [[float(place.x), float(place.t)]]
                    wanted = moving.predict(point, what)[0]
                    assert float(place) == pytest.approx(wanted, rel=1e-5, abs=1e-6)
        assert found.u.attrs == {"units": "K", "long_name": "u"}
        assert found.x.attrs["units"] == "m" and found.t.attrs["units"] == "s"
        assert float(found.speed) == moving.unknowns["speed"]
        assert found.speed.attrs["units"] == "m/s"
        assert found.attrs["title"] == "moving & <still>" and "seed 5" in found.attrs["source"]
    with pytest.raises(UserError, match=r"fit\.nc exists"):
        write_netcdf(moving, path)


def test_a_coefficient_that_varies_is_a_field_like_any_other(still):
    found = to_dataset(still, 4)
    assert set(found.data_vars) == {"u", "k"} and found.k.shape == (4, 4)


def arrays(path):
    """The arrays of a .vti file, with its grid, read as VTK's documents say."""
    image = ET.parse(path).getroot().find("ImageData")
    assert image is not None
    extent = [int(n) for n in image.attrib["WholeExtent"].split()]
    counts = [high - low + 1 for low, high in zip(extent[::2], extent[1::2], strict=True)]
    found = {}
    for array in image.iter("DataArray"):
        content = base64.b64decode(array.text or "")
        (size,) = struct.unpack("<Q", content[:8])
        assert size == len(content) - 8 == 8 * int(np.prod(counts))
        # The first axis runs fastest.
        values = np.frombuffer(content[8:], "<f8").reshape(counts[::-1]).T
        found[array.attrib["Name"]] = values
    grid = {name: [float(n) for n in image.attrib[name].split()] for name in ("Origin", "Spacing")}
    return found, grid


def test_vtk_without_time_is_one_image(still, tmp_path):
    (path,) = write_vtk(still, tmp_path / "fit", {"x": 3, "y": 5}, ("u", "k", "u.xy"))
    assert path.name == "fit.vti"
    found, grid = arrays(path)
    assert grid == {"Origin": [0.0, -1.0, 0.0], "Spacing": [1.0, 0.5, 1.0]}
    for name in ("u", "k", "u.xy"):
        assert found[name].shape == (3, 5, 1)
        for i, j in ((0, 0), (2, 1), (1, 4)):
            value = still.predict([[i * 1.0, -1 + 0.5 * j]], name)[0]
            assert found[name][i, j, 0] == pytest.approx(value, rel=1e-5, abs=1e-6)


def test_vtk_with_time_is_a_collection_of_images(moving, tmp_path):
    collection, *steps = write_vtk(moving, tmp_path / "fit.vtk", {"x": 4, "t": 3})
    assert collection.name == "fit.pvd"
    listed = list(ET.parse(collection).getroot().iter("DataSet"))
    assert [float(entry.attrib["timestep"]) for entry in listed] == [1.0, 2.5, 4.0]
    assert [entry.attrib["file"] for entry in listed] == [step.name for step in steps]
    for entry, step in zip(listed, steps, strict=True):
        found, grid = arrays(step)
        assert grid["Spacing"] == pytest.approx([2 / 3, 1, 1])
        at = [[2 / 3, float(entry.attrib["timestep"])]]
        assert found["v"][1, 0, 0] == pytest.approx(moving.predict(at, "v")[0], rel=1e-6)
    # One file in the way, and none is touched.
    collection.unlink()
    before = {step: step.read_bytes() for step in steps}
    with pytest.raises(UserError, match="exists"):
        write_vtk(moving, tmp_path / "fit.vtk", {"x": 2, "t": 3})
    assert {step: step.read_bytes() for step in steps} == before and not collection.exists()


def test_names_cannot_break_out_of_the_file(tmp_path):
    name = '"/><script>&'
    (tmp_path / "a.vti").write_text(image_data([np.linspace(0, 1, 2)], {name: np.array([1.0, 2])}))
    assert arrays(tmp_path / "a.vti")[0][name].ravel().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"x": 3}, "a count for each of x, t"),
        ({"x": 3, "t": 3, "z": 3}, "not for x, t, z"),
        ({"x": 0, "t": 3}, "one point or more"),
        (100_000, "10,000,000,000 points is too large"),
    ],
)
def test_grids_that_cannot_be(moving, counts, sentence, tmp_path):
    with pytest.raises(UserError, match=sentence):
        write_netcdf(moving, tmp_path / "a.nc", counts)
    assert not list(tmp_path.iterdir())
