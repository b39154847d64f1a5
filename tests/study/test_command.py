"""`unpinn study`: what it refuses, tells beforehand, runs and reports."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from tests.study.conftest import decay_in

from unpinn.study import Store, shipped_plans

MINE = 'title = "Mine"\n\n[[table]]\nname = "a"\nproblems = ["heat"]\nmethods = ["ppinn"]\n'


@pytest.fixture
def there(studied, tmp_path, monkeypatch):
    """A folder with the small study and its finished store."""
    decay_in(tmp_path)
    shutil.copytree(studied.store.path, tmp_path / "studies")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SETTINGS = ("--budget", "quick", "--seeds", "1,2")


@pytest.mark.parametrize("name", shipped_plans())
def test_every_study_that_comes_along_is_named_where_help_is_needed(
    run_cli, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    assert name in run_cli("study", "--help").stdout
    for wrong in ("papper", f"{name}.toml"):
        result = run_cli("study", wrong, "--dry-run")
        assert result.exit_code == 2
        assert name in result.stderr and wrong in result.stderr
        assert result.stderr.count("\n") == 1
    result = run_cli("study", name, "--dry-run", "--budget", "quick", "--problems", "poisson")
    assert result.exit_code == 0 and "poisson" in result.stdout
    assert not any(tmp_path.iterdir())


def test_a_dry_run_tells_runs_and_costs_and_writes_nothing(run_cli, there):
    shutil.rmtree(there / "studies")
    result = run_cli("study", "decay.toml", *SETTINGS, "--dry-run", "--workers", "3")
    assert result.exit_code == 0
    assert "6 of 6 runs are missing" in result.stdout
    assert "2 baselines are trained once for 4 other runs" in result.stdout
    assert "with 3 workers" in result.stdout
    assert "2 % of every training's epochs, a check, not a result" in result.stderr
    assert {path.name for path in there.iterdir()} == {"decay.py", "decay.toml"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (MINE.replace("heat", "haet"), "mine.toml, line 5: there is no problem 'haet'; did you"),
        (MINE.replace("ppinn", "ppin"), "mine.toml, line 6: there is no method 'ppin'; did you"),
        (MINE + "recpe = 1", "mine.toml, line 7: there is no setting of a table 'recpe'; did"),
    ],
)
def test_a_bad_study_file_is_refused_before_anything_runs(
    run_cli, tmp_path, monkeypatch, text, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(text)
    result = run_cli("study", "mine.toml", "--budget", "quick")
    assert result.exit_code == 2 and result.stderr.startswith(f"unpinn: {told}"), result.stderr
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--workers", "0"), "--workers must be 1 or more, not 0"),
        (("--scheduler", "tcp://a:1", "--slurm"), "give one of them"),
        (("--scheduler", "tcp://a:1", "--workers", "2"), "a scheduler has its own workers"),
        (("--dry-run", "--only-report"), "give one of them"),
        (("--dry-run", "--take", "other"), "cannot --take anything"),
        (("--seeds", "1,two"), "--seeds takes whole numbers separated by commas, not 'two'"),
        (("--budget", "fast"), "there is no budget 'fast'"),
        (("--tables", "rate"), "did you mean 'rates'?"),
        (("--take", "gone"), "there is no store gone to take runs from"),
        (("--report", "decay.py"), "decay.py is a file; choose a directory for the report"),
        (("--report", "."), ". holds other files"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(run_cli, there, arguments, told):
    result = run_cli("study", "decay.toml", "--budget", "quick", *arguments)
    assert result.exit_code == 2 and told in result.stderr, result.stderr
    assert not list(there.glob("studies/report*"))


def test_a_report_can_be_made_without_running_anything(run_cli, there):
    shutil.rmtree(there / "studies" / "runs" / first_run(there))
    result = run_cli("study", "decay.toml", *SETTINGS, "--only-report")
    assert result.exit_code == 0
    assert "the report is studies/report-decay-quick/index.html" in result.stdout
    assert "1 of 6 runs are missing" in (there / "studies/report-decay-quick/README.md").read_text()


def test_a_finished_study_is_reported_at_once_with_its_command(run_cli, there, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["unpinn", "study", "decay.toml", *SETTINGS])
    result = run_cli("study", "decay.toml", *SETTINGS, "--report", "mine")
    assert result.exit_code == 0
    page = (there / "mine" / "index.html").read_text()
    assert "unpinn study decay.toml --budget quick --seeds 1,2" in page
    assert len(json.loads((there / "mine" / "main.json").read_text())) == 6


def test_runs_can_be_taken_over_and_reported(run_cli, there):
    result = run_cli(
        "study", "decay.toml", *SETTINGS, "--store", "new", "--take", "studies", "--only-report"
    )
    assert result.exit_code == 0 and "6 runs taken over from studies" in result.stderr
    records = json.loads((there / "new/report-decay-quick/main.json").read_text())
    assert {record["status"] for record in records} == {"finished"}


def test_a_study_with_failures_says_so_with_its_exit_code(run_cli, there, monkeypatch):
    import unpinn.cli._study as command
    from unpinn.study import InProcess

    def fails(name, task):
        raise MemoryError("no room")

    monkeypatch.setattr("unpinn.study._perform.run_method", fails)
    monkeypatch.setattr(command, "_executor", lambda *asked: InProcess())
    shutil.rmtree(there / "studies" / "runs" / first_run(there))
    result = run_cli("study", "decay.toml", *SETTINGS)
    assert result.exit_code == 3
    assert "failed: MemoryError: no room" in result.stderr
    assert "MemoryError: no room" in (there / "studies/report-decay-quick/index.html").read_text()


@pytest.mark.slow
def test_one_command_runs_a_study_and_the_same_again_only_reports(there):
    shutil.rmtree(there / "studies")
    command = [sys.executable, "-m", "unpinn.cli", "study", "decay.toml", *SETTINGS,
               "--workers", "2"]  # fmt: skip
    first = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "6 runs to do (0 are there)" in first.stderr
    assert first.stderr.count("decay P") == 6
    again = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "runs to do" not in again.stderr
    assert "the report is studies/report-decay-quick/index.html" in again.stdout


def first_run(folder) -> str:
    """One that nothing else starts from."""
    store = Store(folder / "studies")
    runs = sorted(path.name for path in (folder / "studies" / "runs").iterdir())
    return next(a for a in runs if store.record(a)["method"] == "ppinn")
