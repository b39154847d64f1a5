"""The program as a whole: help, version, what a mistake costs, and what it is told."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import unpinn
from unpinn.cli import app

COMMANDS = ("run", "compare", "problems", "new", "data", "report", "export", "study")
LIMIT, SLACK = 1.0, 2.0

# What must not be loaded to print a help text.
HEAVY = ("jax", "numpy", "scipy", "matplotlib", "pandas", "equinox")
SCRIPT = """
import sys, time
sys.argv = ["unpinn", *sys.argv[1:]]
from unpinn.cli import main
try:
    main()
except SystemExit as end:
    heavy = [name for name in {heavy!r} if name in sys.modules]
    print("#", end.code or 0, time.process_time(), *heavy)
"""


def fresh(*arguments: str) -> tuple[str, int, float, list[str]]:
    """In a new process: what is printed, the exit code, seconds of processor, what is loaded."""
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(heavy=HEAVY), *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    *text, last = process.stdout.splitlines()
    _, code, seconds, *heavy = last.split()
    return "\n".join(text), int(code), float(seconds), heavy


def plain(text: str) -> str:
    """Without frames and line breaks, which depend on the width of the terminal."""
    return re.sub(r"\s+", " ", re.sub(r"[│╭╮╰╯─]", " ", text))


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_help_and_version_take_under_a_second_and_load_nothing_heavy(arguments):
    # The processor's time, which other work beside this one disturbs least; with slack even so.
    text, code, seconds, heavy = fresh(*arguments)
    assert text and code == 0 and heavy == []
    assert seconds < LIMIT * SLACK


def test_the_version_is_the_packages(invoke):
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"unpinn {unpinn.__version__}\n")


def test_the_module_is_the_program():
    told = subprocess.run(
        [sys.executable, "-m", "unpinn.cli", "--version"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert told == f"unpinn {unpinn.__version__}\n"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_every_command(invoke, flag):
    result = invoke(flag)
    assert result.exit_code == 0
    listed = {command.name for command in app.registered_commands}
    listed |= {group.name for group in app.registered_groups}
    assert listed == set(COMMANDS)
    assert all(f" {name} " in plain(result.stdout) for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(invoke, command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert f"Usage: unpinn {command}" in plain(result.stdout)


def test_without_a_command_it_helps(invoke):
    result = invoke()
    assert "Usage: unpinn" in result.output and "problems" in result.output


MISSPELT = {
    "a command": (["problms"], "Did you mean 'problems'?"),
    "an option": (["run", "heat", "--epoch", "3"], "--epochs"),
    "a problem": (["run", "heet"], "there is no problem 'heet'; did you mean 'heat'?"),
    "a problem to look at": (["problems", "winw"], "did you mean 'winv'?"),
    "a method": (["run", "heat", "--method", "ppin"], "did you mean 'ppinn'?"),
    "one of the methods": (
        ["compare", "heat", "--methods", "pinn,hubber"], "did you mean 'huber'?",
    ),
    "a setting": (
        ["run", "heat", "--method", "huber", "--set", "tunin=2"], "did you mean 'tuning'?",
    ),
    "a preset": (["run", "heat", "--preset", "release"], "did you mean 'released'?"),
    "a recipe": (["run", "heat", "--recipe", "papper"], "did you mean 'paper'?"),
    "a protocol": (["run", "heat", "--protocol", "defalt"], "did you mean 'default'?"),
    "a budget": (["run", "heat", "--budget", "quik"], "did you mean 'quick'?"),
    "a kind of noise": (
        ["run", "heat", "--noise-kind", "gausian"], "did you mean 'gaussian'?",
    ),
    "a data set": (["data", "fetch", "wakes"], "there is no data set 'wakes'"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSPELT)
def test_a_misspelt_name_is_told_with_the_nearest(case, invoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, words = MISSPELT[case]
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert words in plain(result.stderr)
    assert result.stdout == "" and not list(tmp_path.iterdir())


MISTAKES = {
    "no epoch": (["run", "heat", "--epochs", "0"], "epochs must be 1 or more"),
    "fewer epochs than stages": (["run", "heat", "--epochs", "1"], "2 stages need an epoch each"),
    "epochs and budget": (
        ["run", "heat", "--epochs", "9", "--budget", "quick"], "both say how long to train",
    ),
    "no thread": (["run", "heat", "--threads", "0"], "--threads must be 1 or more"),
    "a negative seed": (["run", "heat", "--seed", "-1"], "a seed must be a whole number"),
    "more bad readings than readings": (
        ["run", "heat", "--noise-share", "1.5"], "share of bad readings in [0, 1]",
    ),
    "good readings worse than bad ones": (
        ["run", "heat", "--noise-low", "3"], "levels 0 <= low <= high",
    ),
    "readings for a benchmark": (
        ["run", "heat", "--data", "sensors.csv"], "simulates its readings",
    ),
    "a setting without a value": (["run", "heat", "--set", "share"], "--set takes name=value"),
    "a setting given twice": (
        ["run", "heat", "--set", "a=1", "--set", "a=2"], "gives 'a' twice",
    ),
    "no such file": (["run", "beam.py"], "there is no problem file beam.py"),
    "one method twice": (
        ["compare", "heat", "--methods", "pinn,pinn"], "needs different names",
    ),
    "no method": (["compare", "heat", "--methods", ","], "needs different names"),
    "a setting of no method": (
        ["compare", "heat", "--methods", "pinn", "--set", "huber.width=1"],
        "must begin with one of the methods",
    ),
    "a picture of nothing": (["problems", "--picture", "a.png"], "needs a problem's name"),
    "a picture and none": (
        ["problems", "heat", "--picture", "a.png", "--no-picture"], "contradict each other",
    ),
    "a picture of no kind": (
        ["problems", "heat", "--picture", "a.doc"], "no picture can be drawn as '.doc'",
    ),
    "a report on nothing": (["report", "nowhere"], "nowhere is not a run's directory"),
    "an export of nothing": (["export", "nowhere", "u.nc"], "nowhere is not a run's directory"),
    "an export of no kind": (["export", "nowhere", "u.doc"], "must end in one of .nc"),
    "a starter that is no Python": (["new", "beam.txt"], "try beam.py"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_sentence_before_any_work(case, invoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, words = MISTAKES[case]
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("unpinn: ") and result.stderr.count("\n") == 1
    assert words in result.stderr
    assert result.stdout == "" and not list(tmp_path.iterdir())
