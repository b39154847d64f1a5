from __future__ import annotations

import re

import pytest

from unpinn import UserError
from unpinn.study import Choice, Source, graph_of, parse_plan, read_plan, shipped_plans

HEAD = """title = "Mine"

[defaults]
protocol = "paper"
seeds = [42]

[[table]]
name = "first"
problems = ["heat"]
methods = ["pinn"]

[[table]]
name = "second"
"""


def mistake(text: str, budget: str = "quick") -> str:
    """What is said of a plan that is refused before anything runs."""
    with pytest.raises(UserError) as caught:
        graph_of([parse_plan(Source("mine.toml", text))], Choice(budget))
    return str(caught.value)


def line_of(text: str, part: str) -> int:
    return 1 + next(k for k, line in enumerate(text.splitlines()) if part in line)


@pytest.mark.parametrize(
    ("rest", "where", "words"),
    [
        ('problems = ["haet"]\nmethods = ["pinn"]', "haet", "did you mean 'heat'?"),
        ('problems = ["wave"]\nmethods = ["ppin"]', "ppin", "did you mean 'ppinn'?"),
        ('problems = ["wave"]\nmethods = ["pinn"]\nquantites = ["l2re"]', "quantites",
         "did you mean 'quantities'?"),
        ('problems = ["wave"]\nmethods = ["pinn"]\nquantities = ["l2er"]', "l2er",
         "did you mean 'l2re'?"),
        ('problems = ["wave"]\nmethods = ["pinn"]\nbudgets = ["quik"]', "quik",
         "did you mean 'quick'?"),
        ('problems = ["wave"]\nmethods = ["pinn"]\nprinted = "L2ER"', "L2ER",
         "did you mean 'L2RE'?"),
        ('problems = ["wave"]\nmethods = ["pinn"]\nfigure = "curve"', "curve",
         "did you mean 'curves'?"),
        ('problems = ["wave"]\nmethods = ["pinn"]\nnoise = { hihg = 1.0 }', "hihg",
         "did you mean 'high'?"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\n'
         'variants = [{ label = "a", unlearning = { shar = 0.5 } }]', "shar",
         "did you mean 'share'?"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nnetwork = { widht = 10 }', "widht",
         "did you mean 'width'?"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nprotocol = "papr"', "papr",
         "did you mean 'paper'?"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nrecipe = "defalt"', "defalt",
         "did you mean 'default'?"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\npreset = "relased"', "relased",
         "did you mean 'released'?"),
        ('problems = ["wave"]\nmethods = ["huber"]\noptions = { tunnig = 1.0 }', "tunnig",
         "did you mean 'tuning'?"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nunlearning = { criterion = "magnitud" }',
         "magnitud", "did you mean 'magnitude'?"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nnoise = { kind = "gausian" }', "gausian",
         "gaussian"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nunlearning = { share = 1.5 }', "share = 1.5",
         "1.5"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nepochs = 0', "epochs", "1 or more"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nseeds = [1, 1]', "seeds = [1, 1]",
         "different whole numbers"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nseeds = [-1]', "seeds = [-1]",
         "zero or more"),
        ('problems = []\nmethods = ["ppinn"]', "problems = []", "a list of problems"),
        ('problems = ["wave", "wave"]\nmethods = ["ppinn"]', '"wave", "wave"',
         "two problems are called 'wave'"),
        ('problems = ["gone.py"]\nmethods = ["ppinn"]', "gone.py", "there is no file gone.py"),
        ('problems = ["wave"]\nmethods = ["ppinn"]\nfigure = "curves"\n'
         'variants = [{ label = "a" }]', "curves", "a number x in every variant"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_nearest_name(rest, where, words):
    text = HEAD + rest + "\n"
    told = mistake(text)
    assert told.startswith(f"mine.toml, line {line_of(text, where)}: "), told
    assert words in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = ", "mine.toml, line 1: this is not valid TOML"),
        ('title = "a"\n[[table]\n', "mine.toml, line 2: this is not valid TOML"),
        ('title = "a"\n', "a study needs at least one [[table]]"),
        ('titel = "a"\n', "line 1: there is no setting of a study 'titel'; did you mean 'title'?"),
        (HEAD.replace("protocol", "protocl") + 'problems = ["heat"]\nmethods = ["pinn"]',
         "line 4: there is no default 'protocl'; did you mean 'protocol'?"),
        (HEAD.replace('"first"', '"a b"') + 'problems = ["heat"]\nmethods = ["pinn"]',
         "line 8: the table's name 'a b' must be letters and digits"),
        (HEAD.replace('"first"', '"second"') + 'problems = ["heat"]\nmethods = ["pinn"]',
         "line 13: two tables are called 'second'"),
        (HEAD, "line 13: a table needs a list of problems"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_plan_is_refused(text, words):
    assert words in mistake(text)


@pytest.mark.parametrize("name", shipped_plans())
def test_the_shipped_plans_can_be_posed_to_the_last_setting(name):
    plan = read_plan(name)
    graph = graph_of([plan], Choice("paper", (42,)))
    assert [table.name for _, table in graph.tables] == [table.name for table in plan.tables]
    for node in graph.nodes.values():
        assert node.needs is None or node.needs in graph.nodes
        assert node.seconds > 0
    # At the least budget the main tables are still there.
    quick = graph_of([plan], Choice("quick"))
    assert any(table.main for _, table in quick.tables)
    assert len({cell.seed for cell, _ in quick.cells}) == 1


def test_the_shipped_plans_are_named():
    assert shipped_plans() == ("ablation", "ours", "paper")


def test_the_papers_plan_has_every_table_of_its_numerical_section():
    plan = read_plan("paper")
    by_name = {table.name: table for table in plan.tables}
    problems = {entry.name for entry in by_name["main"].problems}
    assert problems == {
        "poisson", "heat", "heat-forced", "wave", "stokes", "pinv", "hinv", "nsinv", "ebinv",
        "winv",
    }  # fmt: skip
    assert [m.name for m in by_name["main"].methods] == ["pinn", "ppinn", "bpinn", "dpinn"]
    assert {t.name for t in plan.tables} >= {
        "nsinv-beta", "time", "strategy", "criteria", "noise", "layers", "retention",
    }  # fmt: skip
    assert [v.x for v in by_name["layers"].variants] == [0, 1, 2, 3, 4, 5]
    assert [v.x for v in by_name["retention"].variants] == [20, 40, 60, 80, 100]


@pytest.mark.parametrize("name", ["papr", "nothing.toml"])
def test_a_study_that_is_not_there_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=re.escape(name)):
        read_plan(name)


def test_a_study_file_finds_its_problem_files_beside_it(tmp_path, decay):
    decay()
    (tmp_path / "mine.toml").write_text(
        'title = "Mine"\n[[table]]\nname = "only"\nproblems = ["decay.py"]\nmethods = ["pinn"]\n'
        'quantities = ["unknowns.rate"]\nseeds = [3]\n'
    )
    plan = read_plan(str(tmp_path / "mine.toml"))
    assert plan.name == "mine"
    ((cell, _),) = graph_of([plan], Choice("quick")).cells
    assert cell.problem.label == "decay"
    assert cell.seed == 3


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"problems": ("heet",)}, "in mine, there is no problem 'heet'; did you mean 'heat'?"),
        ({"methods": ("pin",)}, "in mine, there is no method 'pin'; did you mean 'pinn'?"),
        ({"tables": ("frist",)}, "in mine, there is no table 'frist'; did you mean 'first'?"),
    ],
)
def test_a_choice_of_something_unknown_is_refused(choice, words):
    plan = parse_plan(Source("mine.toml", HEAD + 'problems = ["wave"]\nmethods = ["pinn"]'))
    with pytest.raises(UserError, match=re.escape(words)):
        graph_of([plan], Choice("quick", **choice))


def test_an_unknown_budget_and_a_negative_seed_are_refused():
    with pytest.raises(UserError, match="there is no budget 'quik'; did you mean 'quick'"):
        Choice("quik")
    with pytest.raises(UserError, match="zero or more, not -1"):
        Choice("quick", (-1,))


def test_a_choice_that_leaves_nothing_is_refused():
    text = HEAD.replace('name = "first"', 'name = "first"\nbudgets = ["paper"]')
    text += 'problems = ["wave"]\nmethods = ["pinn"]\nbudgets = ["paper"]'
    assert mistake(text) == "nothing of mine is left to run"
