"""`unpinn run`: what it prints, what it writes, how it ends, and how it goes on."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import unpinn
from unpinn._files import read_arrays
from unpinn.cli._progress import ProgressLines
from unpinn.training import load

FILES = {
    "configuration.json", "metrics.json", "history.parquet", "suspects.csv", "unknowns.json",
    "index.html", "fit", "pictures",
}  # fmt: skip


def settings(run, **changes):
    """The arguments of a run, some of them changed."""
    arguments = list(run.arguments)
    for name, value in changes.items():
        arguments[arguments.index(f"--{name}") + 1] = value
    return arguments


def arrays(directory):
    """All numbers of a fit, the baseline's included, bit by bit.

    Not the files' bytes: safetensors writes what is said about the arrays in any order.
    """
    found = {}
    for fit in (directory / "fit", directory / "fit" / "before"):
        for name, array in read_arrays(fit / "fit.safetensors")[0].items():
            found[fit.name, name] = (array.dtype.str, array.shape, array.tobytes())
    return found


def lasting(records):
    """Records without what differs between two runs of the same settings: times."""
    return [{k: v for k, v in r.items() if not k.startswith("seconds")} for r in records]


# -- what is printed and written -----------------------------------------------------------


def test_json_is_the_records_and_nothing_else(finished):
    assert finished.records == json.loads((finished.directory / "metrics.json").read_text())
    assert [record["method"] for record in finished.records] == ["pinn", "ppinn"]
    assert finished.printed.startswith("[\n") and finished.printed.endswith("]\n")


def test_a_directory_holds_everything_and_no_leftovers(finished):
    assert {entry.name for entry in finished.directory.iterdir()} == FILES
    page = (finished.directory / "index.html").read_text()
    assert "transport" in page and "speed" in page
    pictures = {path.name for path in (finished.directory / "pictures").iterdir()}
    assert {"suspects.png", "loss-pinn.png", "unknowns-pinn.png"} <= pictures


def test_the_fit_can_be_read_back_and_says_what_the_records_say(finished, stated):
    from unpinn.readings import load_problem_file

    fit = load(finished.directory / "fit", load_problem_file(str(stated)).problem)
    before, after = finished.records
    assert fit.unknowns == after["unknowns"] and fit.before.unknowns == before["unknowns"]
    assert fit.status.code == after["status"]


def test_the_summary_names_methods_unknowns_and_the_page(invoke, stated, tmp_path):
    out = tmp_path / "run"
    data = stated.with_name("sensors.csv")
    result = invoke("run", stated, "--data", data, "--out", out, "--method", "pinn")
    assert result.exit_code == 0 and result.stderr == ""
    first, read, *_, last = result.stdout.strip().splitlines()
    assert first == "transport: transport" and "64" in read and "sensors.csv" in read
    assert "transport, seed 42" in result.stdout and "PINN" in result.stdout
    (record,) = json.loads((out / "metrics.json").read_text())
    assert f"{record['unknowns']['speed']:.5g}" in result.stdout
    assert last == f"everything is in {out}; open {out / 'index.html'}"


def test_quiet_prints_nothing(invoke, stated, tmp_path):
    data = stated.with_name("sensors.csv")
    result = invoke(
        "run", stated, "--data", data, "--out", tmp_path / "run", "--method", "pinn", "--epochs",
        "5", "--no-pictures", "-q",
    )  # fmt: skip
    assert (result.exit_code, result.output) == (0, "")
    written = {entry.name for entry in (tmp_path / "run").iterdir()}
    assert "pictures" not in written and "index.html" not in written and "fit" in written
    (record,) = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert record["budget"] == "5 epochs"


def test_without_a_directory_the_run_is_named_by_its_settings(
    invoke, stated, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    common = ["--data", stated.with_name("sensors.csv"), "--method", "pinn", "--no-pictures", "-q"]
    for more in (["--epochs", "2"], ["--epochs", "3"]):
        assert invoke("run", stated, *common, *more).exit_code == 0
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert len(names) == 2 and all(name.startswith("transport-pinn-42-") for name in names)


# -- a directory that is in use ------------------------------------------------------------


def test_a_finished_run_is_not_done_again_unasked(invoke, finished):
    before = arrays(finished.directory)
    result = invoke(*finished.arguments)
    assert result.exit_code == 2
    assert "holds this run, finished" in result.stderr and "--force" in result.stderr
    assert arrays(finished.directory) == before


def test_a_directory_of_another_run_is_refused_with_the_difference(invoke, finished, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(finished.directory, out)
    result = invoke(*settings(finished, out=out), "--seed", "7")
    assert result.exit_code == 2 and "its seed is 42, not 7" in result.stderr
    changed = tmp_path / "changed.py"
    changed.write_text(finished.arguments[1].read_text().replace("Grid(7, 7)", "Grid(6, 7)"))
    result = invoke("run", changed, *settings(finished, out=out)[2:])
    assert result.exit_code == 2 and "holds another run" in result.stderr
    more = tmp_path / "more.csv"
    more.write_text(finished.arguments[3].read_text() + "0.5,0.5,0.0\n")
    result = invoke(*settings(finished, out=out, data=more))
    assert result.exit_code == 2 and "holds another run" in result.stderr


def test_force_replaces_a_run_and_nothing_else(invoke, finished, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(finished.directory, out)
    (out / "notes.txt").write_text("mine")
    result = invoke(*settings(finished, out=out), "--seed", "7", "--method", "pinn", "--force",
                    "--epochs", "3", "--no-pictures", "-q")  # fmt: skip
    assert result.exit_code == 0, result.output
    (record,) = json.loads((out / "metrics.json").read_text())
    assert (record["seed"], record["method"]) == (7, "pinn")
    assert (out / "notes.txt").read_text() == "mine"
    # What the earlier run had drawn would be taken for this one's.
    assert not (out / "pictures").exists() and not (out / "index.html").exists()


# -- how it ends ---------------------------------------------------------------------------


def wild(finished, tmp_path):
    """The same problem, trained until all is lost."""
    file = tmp_path / "wild.py"
    stages = "unpinn.Adam(epochs=10, rate=1e-2), unpinn.Adam(epochs=50, rate=1e12)"
    stated = finished.arguments[1].read_text()
    file.write_text(stated.replace("unpinn.Adam(epochs=60, rate=1e-2)", stages))
    return file


def test_divergence_is_said_and_costs_the_exit_code(invoke, finished, tmp_path):
    out = tmp_path / "out"
    arguments = settings(finished, out=out)[2:]
    result = invoke("run", wild(finished, tmp_path), *arguments, "--method", "pinn")
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert "diverged after epoch 0; kept that state" in result.stderr
    assert "its numbers are not an answer" in result.stderr
    assert "ended" in result.stdout and "diverged" in result.stdout
    (record,) = json.loads((out / "metrics.json").read_text())
    assert record["status"] == "diverged" and "kept that state" in record["reason"]
    # What was kept is the state before, whose numbers are numbers.
    assert np.isfinite(record["unknowns"]["speed"]) and np.isfinite(record["misfit"])


def test_records_are_printed_even_where_a_run_diverged(invoke, finished, tmp_path):
    arguments = settings(finished, out=tmp_path / "out")[2:]
    result = invoke("run", wild(finished, tmp_path), *arguments, "--json")
    plain, unlearned = json.loads(result.stdout)
    assert (plain["method"], unlearned["method"]) == ("pinn", "ppinn")
    assert plain["status"] == "diverged"
    # The answer is the unlearned network's, which may have recovered from the state that was kept.
    assert (result.exit_code == 3) == (unlearned["status"] == "diverged")


@pytest.mark.parametrize("moment", [3, 8])
def test_an_interrupted_run_goes_on_with_the_same_command(
    invoke, finished, tmp_path, monkeypatch, moment
):
    arguments = settings(finished, out=tmp_path / "run")
    count = 0

    def interrupt(self, moment_of_training):
        nonlocal count
        count += 1
        if count == moment:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ProgressLines, "__call__", interrupt)
        patch.setattr("sys.argv", ["unpinn", *map(str, arguments)])
        result = invoke(*arguments)
    assert result.exit_code == 130
    assert "interrupted; `unpinn run" in result.stderr
    assert "goes on where it stopped" in result.stderr
    assert not (tmp_path / "run" / "metrics.json").exists()
    assert list((tmp_path / "run" / "checkpoints").rglob("*.safetensors"))
    # Other settings are another run's.
    assert invoke(*arguments, "--seed", "7").exit_code == 2
    seen: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(ProgressLines, "__call__", lambda self, m: seen.append(m.epoch))
        assert invoke(*arguments).exit_code == 0
    assert 1 not in seen[:1]
    assert arrays(tmp_path / "run") == arrays(finished.directory)
    records = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert lasting(records) == lasting(finished.records)


def test_an_interrupt_elsewhere_is_one_line(invoke, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(unpinn.benchmarks, "benchmark", interrupted)
    result = invoke("problems")
    assert result.exit_code == 130 and result.stderr == "unpinn: interrupted\n"


# -- the benchmarks, as they are -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", unpinn.BENCHMARKS)
def test_every_benchmark_runs(invoke, tmp_path, name):
    out = tmp_path / name
    result = invoke("run", name, "--epochs", "200", "--out", out, "--json")
    assert result.exit_code == 0, result.output
    records = json.loads(result.stdout)
    assert [record["method"] for record in records] == ["pinn", "ppinn"]
    for record in records:
        assert record["status"] in ("finished", "kept")
        assert 0 < record["l2re"] < 1e3 and 0 < record["state_l2re"] < 1e3
    bench = unpinn.benchmark(name)
    drawn = {path.stem for path in (out / "pictures").iterdir()}
    assert set(bench.problem.columns) <= drawn
    in_time = {f"{column}-in-time" for column in bench.problem.columns}
    assert in_time <= drawn if bench.problem.time else not in_time & drawn
    assert {"readings", "suspects", "loss-pinn"} <= drawn
