"""A run's directory: what is in it, who may enter it, and what is never written over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unpinn._errors import UserError
from unpinn.runs import (
    Configuration,
    RunDirectory,
    execute,
    execute_or_read,
    pose,
    problem_of_run,
    read_configuration,
    read_run,
)

KEYS = {
    "problem", "noise", "method", "recipe", "seed", "budget", "quantity", "l2re", "state_l2re",
    "seconds", "neurons_left", "detection_auc", "unknowns", "status",
}  # fmt: skip


def contents(directory):
    """Every file with its bytes."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


# -- what is written -----------------------------------------------------------------------


def test_metrics_are_one_flat_record_a_method(finished):
    baseline, clean = json.loads((finished.directory / "metrics.json").read_text())
    assert set(baseline) >= KEYS and set(baseline) == set(clean)
    assert (baseline["method"], clean["method"]) == ("pinn", "ppinn")
    assert (clean["problem"], clean["noise"], clean["seed"]) == ("transport", None, 3)
    # Without an exact solution nothing is claimed about errors.
    for name in ("quantity", "l2re", "state_l2re", "detection_auc"):
        assert clean[name] is None
    assert clean["unknowns"] == finished.fit.unknowns and clean["seconds"] > 0
    assert clean["neurons_left"] < baseline["neurons_left"] == 16
    assert clean["status"] in ("finished", "kept")


def test_a_benchmarks_record_has_the_errors_as_well():
    posed = pose(Configuration("wave", "pinn", epochs=2))
    (record,) = execute(posed).records[-1:]
    assert set(record) >= KEYS and record["noise"] == "paper" and record["budget"] == "2 epochs"
    assert record["quantity"] and record["l2re"] > 0 and record["state_l2re"] > 0
    assert 0 <= record["detection_auc"] <= 1 and record["truly_bad"] > 0


def test_the_history_has_a_row_an_epoch_and_names_the_stage(finished):
    table = pd.read_parquet(finished.directory / "history.parquet")
    counts = table.groupby("method", sort=False).size().to_dict()
    assert counts == {"pinn": 40, "ppinn": len(finished.fit.history)}
    first = table[table.method == "pinn"]
    assert first.epoch.tolist() == list(range(1, 41)) and set(first.kind) == {"adam"}
    np.testing.assert_array_equal(first.speed, finished.fits["pinn"].history["speed"])


def test_a_run_is_read_back(finished, asked, tmp_path):
    problem = problem_of_run(finished.directory)
    fit, records = read_run(finished.directory, problem)
    assert records == json.loads((finished.directory / "metrics.json").read_text())
    assert fit.unknowns == finished.fit.unknowns and fit.before is not None
    np.testing.assert_array_equal(fit.partition.suspect, finished.fit.partition.suspect)
    assert read_configuration(finished.directory) == asked
    with pytest.raises(UserError, match="is not a run's directory"):
        read_run(tmp_path)


def test_a_problem_file_that_has_moved_is_asked_for(finished, asked, tmp_path):
    moved = tmp_path / "run"
    shutil.copytree(finished.directory, moved)
    settings = json.loads((moved / "configuration.json").read_text())
    settings["problem"] = str(tmp_path / "gone.py")
    (moved / "configuration.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match=r"gone\.py is not there any more.*--problem"):
        problem_of_run(moved)
    found = problem_of_run(moved, asked.problem)
    assert found is not None and found.name == "transport"


def test_a_directory_runs_no_problem_file_that_the_user_has_not_run(finished, asked, tmp_path):
    copied, ran = tmp_path / "run", tmp_path / "ran"
    shutil.copytree(finished.directory, copied)
    settings = json.loads((copied / "configuration.json").read_text())
    own = Path(settings["problem"]).read_text()
    hostile = copied / "problem.py"
    hostile.write_text(f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n{own}")
    settings["problem"] = str(hostile)
    (copied / "configuration.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match=r"problem\.py is Python code .* name it with --problem"):
        problem_of_run(copied)
    assert not ran.exists()
    # A copy of the user's own text is no better: what it imports may lie beside it.
    hostile.write_text(own)
    with pytest.raises(UserError, match="that you have not run yet as it is"):
        problem_of_run(copied)
    hostile.write_text(f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n{own}")
    assert problem_of_run(copied, hostile) is not None and ran.exists()


def test_where_nothing_can_be_remembered_a_problem_file_has_to_be_named(
    finished, asked, tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "file" / name)
    pose(asked)
    with pytest.raises(UserError, match="name it with --problem"):
        problem_of_run(finished.directory)
    assert problem_of_run(finished.directory, asked.problem) is not None


# -- who may enter -------------------------------------------------------------------------


def test_a_finished_run_is_read_instead_of_repeated_and_otherwise_refused(finished, asked):
    before = contents(finished.directory)
    again = execute_or_read(pose(asked), finished.directory)
    assert again.fit.unknowns == finished.fit.unknowns and list(again.fits) == ["pinn", "ppinn"]
    with pytest.raises(UserError, match="holds this run, finished"):
        execute(pose(asked), finished.directory)
    with pytest.raises(UserError, match="its seed is 3, not 4"):
        execute_or_read(pose(Configuration(asked.problem, seed=4, data=asked.data)),
                        finished.directory)  # fmt: skip
    assert contents(finished.directory) == before


HOLDER = """\
import sys, time
from unpinn.runs import RunDirectory
from pathlib import Path
with RunDirectory(Path(sys.argv[1])).entered({"seed": 1}):
    print("in", flush=True)
    time.sleep(600)
"""


def test_a_directory_in_use_is_refused_until_its_process_ends(tmp_path):
    place = RunDirectory(tmp_path / "run")
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(place.path)],
                               stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == "in\n"
        before = contents(place.path)
        for force in (False, True):
            with (
                pytest.raises(UserError, match=f"in use by process {process.pid} on") as found,
                place.entered({"seed": 1}, force),
            ):
                raise AssertionError("entered")
            assert "\n" not in str(found.value)
        assert contents(place.path) == before
        process.kill()
    # The file is still there, but no process holds it.
    assert (place.path / "lock").exists()
    with place.entered({"seed": 1}):
        assert f"process {os.getpid()}" in (place.path / "lock").read_text()
    assert not (place.path / "lock").exists()


@pytest.mark.parametrize("name", ["suspects.csv", "suspects-by-sensor.csv", "fit", "index.html"])
def test_what_no_run_has_written_is_never_written_over(name, tmp_path):
    (tmp_path / name).mkdir() if name == "fit" else (tmp_path / name).write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    before = contents(tmp_path)
    place = RunDirectory(tmp_path)
    for force, sentence in ((False, "holds other files"), (True, f"{name} was written by no run")):
        with pytest.raises(UserError, match=sentence), place.entered({"seed": 1}, force):
            raise AssertionError("entered")
    assert contents(tmp_path) == before
    # Beside files of other names there is room, if the user says so.
    (tmp_path / name).rmdir() if name == "fit" else (tmp_path / name).unlink()
    with place.entered({"seed": 1}, force=True):
        assert place.is_run()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_file_where_the_directory_should_be(tmp_path):
    (tmp_path / "run").write_text("mine")
    with (
        pytest.raises(UserError, match=r"run is a file; choose another directory with --out"),
        RunDirectory(tmp_path / "run").entered({}),
    ):
        raise AssertionError("entered")


def test_files_of_other_programs_are_no_run(tmp_path):
    (tmp_path / "configuration.json").write_text('{"format": "theirs"}')
    assert not RunDirectory(tmp_path).is_run()
    with pytest.raises(UserError, match="holds other files"), RunDirectory(tmp_path).entered({}):
        raise AssertionError("entered")
