"""The examples in the documentation run as they stand, with shorter training."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import unpinn
from unpinn.network import Architecture
from unpinn.training import Quiet, _held_out

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What is said of a class by `Name(option=...)` in tables and sentences is run as well.
CALL = re.compile(r"`((?:Scalar|Field|Grid|Sobol|Random)\([^`]*\))`")


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / "docs" / page).read_text())


def run(code: str, page: str, space: dict) -> None:
    exec(compile(code, page, "exec"), space)


@pytest.fixture
def short(monkeypatch, tmp_path):
    """Training of one epoch of a tiny network, whatever is asked for."""
    real = unpinn.train

    def train(problem, observations, protocol=None, seed=0, **options):
        protocol = protocol or unpinn.recommended(problem, observations)
        first = protocol.stages[0].scaled_to(1e-9)
        network = Architecture(width=6, depth=2)
        tiny = dataclasses.replace(protocol, stages=(first,), architecture=network)
        return real(problem, observations, tiny, seed, watcher=Quiet(), **options)

    monkeypatch.setattr(unpinn, "train", train)
    monkeypatch.setattr(_held_out, "train", train)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stated(short) -> dict:
    """What the complete example of the page on problems defines."""
    space: dict = {}
    for code in blocks("problems.md")[:2]:
        run(code, "problems.md", space)
    return space


def test_a_problem_can_be_added_by_the_example(stated):
    from unpinn.network import make_model

    problem, points = stated["problem"], stated["points"]
    assert problem.highest_order == 2 and len(stated["observations"]) == 600
    model = make_model(problem, stated["observations"], Architecture(width=6, depth=2), seed=0)
    some = stated["jnp"].asarray(points[:5], "float32")
    (residual,) = model.evaluate_all(problem.equation_expressions, some)
    assert residual.shape == (5, 1)
    # The readings belong to the viscosity that the page says they do.
    slope = stated["np"].cosh(5 * (points[:, 0] - points[:, 1])) ** -2
    u, u_t, u_x = stated["truth"], 5 * slope, -5 * slope
    u_xx = 50 * slope * (1 - u)
    assert abs(u_t + u * u_x - 0.1 * u_xx).max() < 1e-12


def test_the_rest_of_the_page_on_problems_runs(stated, capsys):
    for code in blocks("problems.md")[3:]:
        run(code, "problems.md", stated)
    assert [len(stated[name].columns) for name in ("steady_flow", "plate")] == [3, 2]
    assert stated["readings"].quantities == ("acceleration",)
    assert "'spede'" in capsys.readouterr().out
    for call in CALL.findall((ROOT / "docs" / "problems.md").read_text()):
        eval(f"unpinn.{call}", {"unpinn": unpinn})


def test_the_page_on_training_runs(stated):
    for code in blocks("training.md"):
        run(code, "training.md", stated)
    assert [stage.length for stage in stated["shorter"].stages] == [100, 250, 50]
    assert stated["again"].unknowns.keys() == {"viscosity"} and stated["fit"].details["held_out"]
    assert len(stated["more"].history) == 1


@pytest.mark.slow
def test_the_example_ends_with_its_suspects(stated, monkeypatch):
    recipe = unpinn.default_recipe().scaled_to(1e-3)
    real = unpinn.unlearn
    monkeypatch.setattr(unpinn, "unlearn", lambda fit: real(fit, recipe))
    run(blocks("problems.md")[2], "problems.md", stated)
    assert stated["clean"].suspects.dtype.kind == "i"


def test_every_page_is_in_the_contents():
    text = (ROOT / "mkdocs.yml").read_text()
    listed = set(re.findall(r"([\w-]+\.md)\s*$", text, re.MULTILINE))
    assert listed == set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_code_on_every_page_is_python(page):
    for code in blocks(page):
        compile(code, page, "exec")
