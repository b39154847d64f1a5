"""A problem file: what it may say, and what it leaves behind."""

from __future__ import annotations

import sys

import pytest

from unpinn._errors import UserError
from unpinn.readings import load_problem_file, starter_text, write_starter

STATED = '''\
"""A rod that cools,
on a table.

More of it.
"""
import unpinn
from beside import LENGTH

problem = unpinn.Problem(
    coordinates={"x": (0.0, LENGTH)}, fields=["T"], equations={"flat": lambda T: T.xx},
    collocation=unpinn.Sobol(8),
)
'''


@pytest.fixture
def stated(tmp_path):
    def written(more: str = "", name: str = "rod.py"):
        (tmp_path / "beside.py").write_text("LENGTH = 2.0\n")
        (tmp_path / name).write_text(STATED + more)
        return load_problem_file(tmp_path / name)

    yield written
    sys.modules.pop("beside", None)


def test_a_file_may_say_everything_about_its_readings(stated, tmp_path):
    (tmp_path / "log.csv").write_text("place,deg,err,who\n500,20,1,a\n600,21,1,b\n600,22,1,b\n")
    found = stated(
        'columns = {"x": "place", "T": "deg"}\nunits = {"x": "mm -> m"}\nsigma = "err"\n'
        'sensor = "who"\nduplicates = "average"\ndata = "log.csv"\n'
    )
    observations, report = found.read_data()
    assert observations.points.ravel().tolist() == [0.5, 0.6]
    assert observations.values.ravel().tolist() == [20, 21.5]
    assert report.source == "log.csv"
    assert found.problem.source["units"] == {"x": "m"}


def test_a_file_may_bring_its_readings_or_a_reader_of_its_own(stated, tmp_path):
    brought = stated("observations = unpinn.observe(problem, [[0.5]], [20.0])\n")
    assert len(brought.read_data()[0]) == 1
    text = "def read(path, problem):\n    xs = [float(p) for p in path.read_text().split()]\n"
    text += "    return unpinn.observe(problem, [[x] for x in xs], xs)\n"
    reader = stated(text, "own.py")
    (tmp_path / "raw.bin").write_text("0.5\n1.5\n")
    observations, report = reader.read_data(tmp_path / "raw.bin")
    assert observations.values.ravel().tolist() == [0.5, 1.5]
    assert report.kept == 2 and "own.py" in report.format


def test_what_a_file_is_called_and_says_of_itself_reaches_the_reports(stated, tmp_path):
    problem = stated().problem
    assert problem.name == "rod"
    assert problem.source["summary"] == "A rod that cools, on a table."
    assert problem.source["file"] == "rod.py" and len(problem.source["sha256"]) == 64
    # No compiled file beside the user's own, and no folder left on the path.
    assert not [p for p in tmp_path.rglob("*.pyc") if "rod" in p.name]
    assert str(tmp_path) not in sys.path


def test_a_fingerprint_follows_the_problem_and_not_the_place(stated, tmp_path):
    here = stated().problem.fingerprint
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("rod.py", "beside.py"):
        (elsewhere / name).write_text((tmp_path / name).read_text())
    assert load_problem_file(elsewhere / "rod.py").problem.fingerprint == here
    (elsewhere / "rod.py").write_text(STATED.replace("T.xx", "2 * T.xx"))
    assert load_problem_file(elsewhere / "rod.py").problem.fingerprint != here


def test_the_starter_can_be_run_as_it_is(run_cli, tmp_path):
    file = tmp_path / "cooling_rod.py"
    result = run_cli("new", file)
    assert result.exit_code == 0 and f"unpinn run {file}" in result.output
    (tmp_path / "s.csv").write_text(
        "sensor,x [mm],t [min],T [degC]\n"
        + "\n".join(f"A{n % 3},{5 * n},{n / 10},{80 - n}" for n in range(1, 41))
    )
    out = tmp_path / "out"
    ran = run_cli("run", file, "--data", tmp_path / "s.csv", "--epochs", 4, "--out", out, "-q")
    assert ran.exit_code == 0, ran.output
    assert {"index.html", "suspects.csv", "suspects-by-sensor.csv", "unknowns.json"} <= {
        path.name for path in out.iterdir()
    }


def test_the_starter_never_replaces_a_file_unasked(run_cli, tmp_path):
    file = tmp_path / "beam.py"
    file.write_text("mine")
    assert run_cli("new", file).exit_code == 2 and file.read_text() == "mine"
    with pytest.raises(UserError, match="exists"):
        write_starter(file)
    assert run_cli("new", file, "--force").exit_code == 0
    assert file.read_text() == starter_text("beam.py")
    assert "beam.py" in run_cli("new", tmp_path / "beam.txt").output
