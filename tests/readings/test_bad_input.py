"""What a user gets wrong is told in one sentence, and nothing is written or written over."""

from __future__ import annotations

import re

import pytest

STATED = """\
import unpinn

problem = unpinn.Problem(
    coordinates={"x": (0.0, 2.0), "t": (0.0, 3600.0)},
    fields=["T"],
    unknowns=[unpinn.Scalar("k", initial=1.0), unpinn.Scalar("loss", initial=1.0)],
    equations={"heat": lambda T, k, loss: T.t - k * T.xx + loss * T},
    collocation=unpinn.Sobol(8),
)
"""
GOOD = "x,t,T\n0.5,1,20\n0.6,2,21\n0.7,3,22\n"


def bare(residual: str) -> str:
    return STATED.replace("T.t - k * T.xx + loss * T", residual)


# What is in the problem file, what is in the data file, and the sentence.
CASES = {
    "missing column": (STATED, GOOD.replace("T", "temp"), r"no column for any of T;.*'temp'"),
    "missing coordinate": (STATED, GOOD.replace("x", "place"), r"coordinate 'x';.*columns="),
    "unparsable cell": (
        STATED, GOOD.replace("0.6", "O.6"), r"line 3, column 'x': 'O\.6' is not a number",
    ),
    "a unit in a cell": (
        STATED, GOOD.replace("21", "21 degC"), r"line 3, column 'T'.*unit of its own",
    ),
    "infinity": (STATED, GOOD.replace("21", "inf"), r"line 3, column 'T' reads infinity"),
    "a date among numbers": (
        STATED, GOOD.replace("21", "2024-05-01"), r"line 3, column 'T'.*is a date among numbers",
    ),
    "mixed units": (
        STATED.replace('"t":', '"y": (0.0, 9.0), "t":'),
        "x [mm],y [m],t,T\n1,2,3,4\n1,2,4,5\n",
        r"coordinates in mixed units \('x \[mm\]' and 'y \[m\]'\); say which.*units=",
    ),
    "all identical": (
        STATED, "x,t,T\n0.5,1,20\n0.6,2,20\n0.7,3,20\n", r"all readings of T are identical \(20\)",
    ),
    "fewer readings than unknowns": (
        STATED, "x,t,T\n0.5,1,20\n", r"1 readings? for 2 unknown numbers \(k, loss\)",
    ),
    "outside the domain": (
        STATED, GOOD.replace("0.7", "700"), r"1 of 3 readings lie outside.*line 4 \(x = 700, ",
    ),
    "no rows": (STATED, "x,t,T\n", r"has no rows"),
    "no header": (STATED, "0.5,1,20\n0.6,2,21\n", r"has no header: its first line is"),
    "an empty file": (STATED, "", r"is empty"),
    "ragged rows": (STATED, GOOD + "1,2,3,4\n", r"line 5 has 4 cells and the header 3"),
    "an open quotation mark": (STATED, GOOD + '"1,2,3\n', r"line 5 is never closed"),
    "bytes": (STATED, "\0\1\2", r"is not text"),
    "a file that raises": (
        "import unpinn\n\n\ndef boom():\n    raise RuntimeError('no such sensor')\n\n\nboom()\n",
        GOOD, r"stated\.py raised RuntimeError: no such sensor \(line 5\)",
    ),
    "a residual that raises": (
        bare("T.t - k / len(5) + loss * T"), GOOD, r"stated\.py, line 3: .*'heat'.*TypeError",
    ),
    "a misspelt derivative": (
        bare("T.tz - k * loss"), GOOD, r"line 3: equation 'heat': T\.tz is not a derivative",
    ),
    "no Python": ("problem = (", GOOD, r"is not valid Python \(line 1: '\(' was never closed\)"),
    "no problem": ("import unpinn\n", GOOD, r"stated\.py sets no 'problem'"),
    "another problem": ("problem = 3\n", GOOD, r"sets problem to an int"),
    "a file that leaves": ("import sys\nsys.exit(4)\n", GOOD, r"left Python \(exit code 4\)"),
    "a wrong protocol": (STATED + "protocol = 5\n", GOOD, r"protocol in stated\.py must be"),
    "a wrong reader": (
        STATED + "def read(path):\n    return 3\n", GOOD, r"read in stated\.py must give Observ",
    ),
    "a reader that raises": (
        STATED + "def read(path):\n    return {}['volts']\n", GOOD,
        r"read in stated\.py raised KeyError: 'volts' \(line 11\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_sentence_and_nothing_is_written(case, run_cli, tmp_path):
    stated, data, sentence = CASES[case]
    file, readings, out = tmp_path / "stated.py", tmp_path / "sensors.csv", tmp_path / "out"
    file.write_text(stated)
    readings.write_text(data)
    result = run_cli("run", file, "--data", readings, "--out", out)
    assert result.exit_code == 2, result.output
    *traceback, told = result.output.strip().split("\n")
    assert re.search(sentence, told), told
    assert told.startswith("unpinn: ")
    assert not out.exists()
    # Only what the user's own code raised comes with a traceback, and that begins in their file.
    if "raise" in case or case == "no Python":
        assert "stated.py" in "".join(traceback) and "unpinn/" not in "".join(traceback)
    else:
        assert not traceback


def test_a_mistake_leaves_an_earlier_run_alone(run_cli, tmp_path):
    file, readings, out = tmp_path / "stated.py", tmp_path / "sensors.csv", tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    file.write_text(STATED)
    readings.write_text(GOOD)
    result = run_cli("run", file, "--data", readings, "--out", out)
    assert result.exit_code == 2 and "thesis.tex" in result.output
    assert sorted(entry.name for entry in out.iterdir() if entry.name != "lock") == ["thesis.tex"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.py"], "there is no problem file nowhere.py; `unpinn new nowhere.py` writes"),
        (["stated.py"], "stated.py brings no readings; say which file holds them"),
        (["stated.py", "--data", "lost.csv"], "there is no file lost.csv"),
        (["stated.py", "--data", "."], "is a folder; name a file in it"),
        (["stated.py", "--data", "stated.py"], "which is not a table this package reads"),
        (["stated.py", "--noise-high", "1"], "a problem file has readings"),
        (["heat", "--data", "lost.csv"], "heat is a benchmark and simulates its readings"),
    ],
)
def test_a_command_that_cannot_work_says_what_would(
    arguments, sentence, run_cli, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stated.py").write_text(STATED)
    result = run_cli("run", *arguments)
    assert result.exit_code == 2
    assert sentence in result.output and result.output.count("\n") == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["stated.py"]
