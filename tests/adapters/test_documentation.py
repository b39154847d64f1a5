"""The page's own snippets run as they stand, with budgets that the page itself names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
LINES = 10
# The page's budgets, and those that a test can afford.
SHORT = {"epochs, share = 3000, 1.0": "epochs, share = 400, 0.04"}
SHORT |= {"iterations, share = 3000, 1.0": "iterations, share = 400, 0.04"}


def snippets(heading: str) -> list[str]:
    """The Python blocks of one chapter."""
    text = PAGE.read_text(encoding="utf-8")
    chapter = re.split(r"^## ", text, flags=re.MULTILINE)
    (mine,) = [part for part in chapter if part.startswith(heading + "\n")]
    return re.findall(r"^```python\n(.*?)^```", mine, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(params=["PyTorch", "DeepXDE"])
def framework(request, tmp_path, monkeypatch):
    if request.param == "DeepXDE":
        pytest.importorskip("deepxde", reason="needs the extra unpinn[deepxde]")
    monkeypatch.chdir(tmp_path)
    return request.param


def ran(framework: str, short: bool) -> dict:
    """What the chapter's two blocks leave behind, one after the other."""
    setup, quick = snippets(framework)
    assert len([line for line in quick.splitlines() if line.strip()]) <= LINES
    budget = [line for line in SHORT if line in setup]
    assert len(budget) == 1, "the page must name its budget"
    if short:
        setup = setup.replace(budget[0], SHORT[budget[0]])
    names: dict = {}
    exec(compile(setup, "setup", "exec"), names)
    exec(compile(quick, "quick start", "exec"), names)
    return names


def test_the_quick_start_runs(framework, tmp_path, capsys):
    names = ran(framework, short=True)
    result = names["result"]
    assert result.status.code == "finished", result.status
    assert "compacted" in result.compaction and max(result.pruning.after) < 24
    assert abs(result.unknowns["k"] - 1.3) < abs(result.before.unknowns["k"] - 1.3)
    suspect = result.partition.suspect
    assert names["is_bad"][suspect].mean() > 0.8
    assert "two kinds of errors" in capsys.readouterr().out
    assert len(list(tmp_path.glob("cleaned-*/suspects.csv"))) == 1


@pytest.mark.slow
def test_the_quick_start_gives_what_the_page_says(framework):
    result = ran(framework, short=False)["result"]
    told = dict(re.findall(r"In (\w+), k goes from ([\d.]+ to [\d.]+)", PAGE.read_text("utf-8")))
    before, after = map(float, told[framework].split(" to "))
    assert result.before.unknowns["k"] == pytest.approx(before, abs=0.01)
    assert result.unknowns["k"] == pytest.approx(after, abs=0.01)


def test_what_the_page_names_is_there():
    """Every file and every import that the page tells of."""
    text = PAGE.read_text(encoding="utf-8")
    for path in re.findall(r"(?:tests|examples)/[\w/]+(?:\.py|/)", text):
        assert (PAGE.parents[1] / path).exists(), path
    for line in re.findall(r"^from unpinn\S* import .*$", text, flags=re.MULTILINE):
        if "deepxde" in line:
            pytest.importorskip("deepxde", reason="needs the extra unpinn[deepxde]")
        exec(line, {})
