"""A fit as a function, as a program and as JSON: the same numbers, with nothing else needed."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn._errors import UserError
from unpinn._files import read_arrays, write_arrays
from unpinn.export import as_function, load_program, unknowns_record, write_program, write_unknowns

needs_flatbuffers = pytest.mark.skipif(
    find_spec("flatbuffers") is None, reason="programs are kept with the package flatbuffers"
)
POINTS = np.random.default_rng(3).uniform((0, 1), (2, 4), (7, 2))


def test_a_function_gives_what_the_fit_predicts(moving):
    both = as_function(moving)
    np.testing.assert_allclose(
        both(POINTS), np.stack(list(moving.predict(POINTS).values()), axis=1), rtol=1e-6
    )
    for what in ("u", "u.xx", "v.t", "slope"):
        function = as_function(moving, what)
        values = moving.predict(POINTS, what)
        np.testing.assert_allclose(function(POINTS), values, rtol=1e-5, atol=1e-6)
        assert function(POINTS[0]).shape == ()
        np.testing.assert_allclose(
            jax.jit(jax.vmap(function))(POINTS), values, rtol=1e-5, atol=1e-6
        )


def test_its_derivatives_are_the_fits_own(moving):
    with precision.scope("float64"):
        u = as_function(moving, "u", "float64")
        point = jnp.asarray(POINTS[0])
        slope = [float(as_function(moving, name, "float64")(point)) for name in ("u.x", "u.t")]
        np.testing.assert_allclose(jax.grad(u)(point), slope, rtol=1e-10)
        bend = jax.hessian(u)(point)
        named = as_function(moving, ("u.xx", "u.xt", "u.tt"), "float64")(point)
        np.testing.assert_allclose(named, [bend[0, 0], bend[0, 1], bend[1, 1]], rtol=1e-9)


def test_what_a_function_cannot_take_is_said(moving):
    with pytest.raises(UserError, match="the 2 coordinates x, t"):
        as_function(moving)(np.zeros(3))
    with pytest.raises(UserError, match=r"precision\.scope\('float64'\)"):
        as_function(moving, "u", "float64")(POINTS)
    with pytest.raises(UserError, match="'w' is not a field"):
        as_function(moving, "w")
    with pytest.raises(UserError, match="at least one quantity"):
        as_function(moving, ())


@needs_flatbuffers
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_program_is_read_back_and_computes_the_same(moving, kind, tmp_path):
    names = ("u", "v", "u.xx")
    path = write_program(moving, tmp_path / "fit.program", names, kind)
    program = load_program(path)
    assert program.coordinates == ("x", "t") and program.quantities == names
    assert program.unknowns == moving.unknowns and program.units["u"] == "K"
    # To rounding of the numbers' own precision, for any number of points.
    tolerance = {"float32": 3e-6, "float64": 1e-12}[kind]
    with precision.scope(kind):
        wanted = np.asarray(as_function(moving, names, kind)(POINTS))
    for count in (1, 7):
        found = program(POINTS[:count])
        assert found.dtype == kind
        np.testing.assert_allclose(found, wanted[:count], rtol=tolerance, atol=tolerance)
    with pytest.raises(UserError, match=r"\(n, 2\) of x, t, not of shape \(3,\)"):
        program(np.zeros(3))
    with pytest.raises(UserError, match="exists"):
        write_program(moving, path)
    # A file of data alone: nothing in it is run as Python, and no folder of this machine is told.
    content = read_arrays(path)[0]["program"].tobytes()
    assert b"/unpinn/" not in content and not re.search(rb"\.py\b", content)


def test_text_for_other_compilers_is_stablehlo_of_any_number_of_points(moving, tmp_path):
    path = write_program(moving, tmp_path / "fit.mlir")
    text = path.read_text()
    assert "stablehlo.dot_general" in text and "func.func public @main" in text
    assert "tensor<?x2xf32>" in text and "tensor<?x2xf32>" in text.split("->")[1]
    assert not re.search(r"\.py\b", text)


@needs_flatbuffers
def test_damaged_and_foreign_files_are_refused_in_one_sentence(moving, tmp_path):
    path = write_program(moving, tmp_path / "fit.program")
    arrays, about = read_arrays(path)
    half = tmp_path / "half.program"
    half.write_bytes(path.read_bytes()[:500])
    changed = tmp_path / "changed.program"
    write_arrays(changed, {"program": arrays["program"][:100]}, about)
    foreign = tmp_path / "foreign.program"
    write_arrays(foreign, {"x": np.zeros(2)})
    for file, sentence in (
        (half, "not a readable"), (changed, "is damaged"), (foreign, "no program"),
        (tmp_path / "none.program", "cannot read|not a readable"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=sentence) as found:
            load_program(file)
        assert "\n" not in str(found.value) and file.name in str(found.value)


def test_unknowns_as_json(moving, still, tmp_path):
    path = write_unknowns(moving, tmp_path / "unknowns.json", {"speed": (1.5, 2.5)}, "by hand")
    found = json.loads(path.read_text())
    assert found["unknowns"]["speed"] == {
        "value": moving.unknowns["speed"], "unit": "m/s", "interval": [1.5, 2.5], "before": None,
        "at_bound": False,
    }  # fmt: skip
    assert found["intervals"] == "by hand" and found["seed"] == 5
    assert found["status"]["code"] == "finished"
    assert unknowns_record(still)["unknowns"] == {}
    with pytest.raises(UserError, match="exists"):
        write_unknowns(moving, path)
