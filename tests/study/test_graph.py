"""From plans to runs: each once, and each under an address that says what decides its numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest
from tests.study.conftest import PLAN

from unpinn import UserError
from unpinn.study import Choice, Source, graph_of, parse_plan, read_plan

TABLE = """
[[table]]
name = "{name}"
problems = ["{problem}"]
methods = ["{method}"]
{more}
"""


def addresses(*tables: str, head: str = "", budget: str = "quick") -> list[str]:
    """The addresses of the cells of a plan, in order."""
    text = 'title = "Mine"\n[defaults]\nseeds = [42]\nprotocol = "paper"\nrecipe = "paper"\n'
    plan = parse_plan(Source("mine.toml", text + head + "".join(tables)))
    return [address for _, address in graph_of([plan], Choice(budget)).cells]


def table(name: str = "first", problem: str = "heat", method: str = "ppinn", more: str = "") -> str:
    return TABLE.format(name=name, problem=problem, method=method, more=more)


def address(more: str = "", **names: str) -> str:
    (found,) = addresses(table(more=more, **names))
    return found


def test_a_baseline_is_one_run_whatever_starts_from_it(decay):
    graph = decay()
    methods = Counter(node.run.configuration.method for node in graph.nodes.values())
    # Two seeds, two variants; the plain network is the same in both variants.
    assert methods == {"pinn": 2, "ppinn": 4}
    assert len(graph.cells) == 8
    assert {start: len(others) for start, others in graph.shared.items()} == {
        node.address: 2 for node in graph.nodes.values() if node.needs is None
    }
    order = list(graph.nodes)
    for node in graph.nodes.values():
        assert node.needs is None or order.index(node.needs) < order.index(node.address)


def test_a_baseline_is_run_even_where_no_table_shows_it(decay):
    graph = decay(PLAN.replace('["pinn", "ppinn"]', '["ppinn"]'))
    assert len(graph.nodes) == 6
    assert {address for _, address in graph.cells} < {*graph.nodes}


def test_equal_runs_of_different_tables_and_plans_are_one():
    first = table("first", more='variants = [{ label = "a", unlearning = { criterion = "std" } }]')
    second = table(
        "second", more='variants = [{ label = "b", unlearning = { criterion = "std" } }]'
    )
    one, other = addresses(first, second)
    assert one == other
    plans = [
        parse_plan(Source(f"{name}.toml", 'title = "t"\n' + table(name))) for name in ("a", "b")
    ]
    graph = graph_of(plans, Choice("quick"))
    assert len(graph.cells) == 2
    assert len(graph.nodes) == 2


@pytest.mark.parametrize(
    "more",
    [
        'title = "Another"\nquantities = ["misfit"]\nfigure = "fields"',
        'variants = [{ label = "any" }]',
        "unlearning = { steps = 20 }",
        "noise = { high = 0.7071067811865476 }",
        'noise = { kind = "gaussian" }',
    ],
)
def test_what_decides_no_number_changes_no_address(more):
    assert address(more) == address()


def test_neither_names_nor_order_change_an_address():
    tables = [table("first"), table("second", "wave"), table("third", method="ft")]
    assert addresses(*tables) == addresses(*reversed(tables))[::-1]
    assert address(name="renamed") == address()


def test_every_setting_that_decides_numbers_changes_the_address():
    found = [
        address(), address(problem="heat-forced"), address(method="ppinn-random"),
        address('protocol = "default"'), address('recipe = "default"'),
        address('preset = "released"'), address("seeds = [43]"), address("epochs = 77"),
        address("noise = { high = 0.5 }"), address('noise = { kind = "student" }'),
        address("unlearning = { share = 0.6 }"), address('unlearning = { criterion = "std" }'),
        address("unlearning = { layers = 2 }"), address("unlearning = { single = true }"),
        address("network = { width = 50 }"), address('network = { kind = "modified" }'),
        address(method="huber"), address("options = { tuning = 2.0 }", method="huber"),
        *addresses(table(), budget="short"), *addresses(table(), budget="paper"),
    ]  # fmt: skip
    assert len({*found}) == len(found)


def test_a_problem_file_counts_by_what_it_states_not_by_where_it_lies(tmp_path, decay):
    graph = decay()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    from tests.study.conftest import decay_in

    assert [*decay_in(elsewhere).nodes] == [*graph.nodes]
    assert not {*decay_in(elsewhere, epochs=900).nodes} & {*graph.nodes}
    file = elsewhere / "decay.py"
    file.write_text(file.read_text().replace("u.t + rate * u", "u.t + rate * u**2"))
    plan = parse_plan(Source("decay.toml", PLAN), elsewhere)
    assert not {*graph_of([plan], Choice("quick", (1, 2))).nodes} & {*graph.nodes}


_OTHER_PROCESSOR = """
from unpinn.study import Choice, graph_of, read_plan
for name, tables in (("ours", ("ours", "noise-kinds")), ("paper", ("main",))):
    print(*graph_of([read_plan(name)], Choice("short", (42,), tables=tables)).nodes)
"""


def test_addresses_are_the_same_on_every_processor():
    """Readings differ in their last digits from processor to processor; addresses must not."""
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"}
    other = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _OTHER_PROCESSOR],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    here = [
        " ".join(graph_of([read_plan(name)], Choice("short", (42,), tables=tables)).nodes)
        for name, tables in (("ours", ("ours", "noise-kinds")), ("paper", ("main",)))
    ]
    assert other.stdout.splitlines() == here


def test_seeds_problems_methods_and_tables_can_be_chosen():
    plan = read_plan("ours")
    everything = graph_of([plan], Choice("paper"))
    some = graph_of(
        [plan], Choice("paper", (43,), ("heat", "wave"), ("pinn", "oracle"), ("ours", "rivals"))
    )
    assert [t.name for _, t in some.tables] == ["ours", "rivals"]
    assert {cell.seed for cell, _ in some.cells} == {43}
    assert {cell.problem.name for cell, _ in some.cells} == {"heat", "wave"}
    assert {cell.method.name for cell, _ in some.cells} == {"pinn", "oracle"}
    assert {*some.nodes} < {*everything.nodes}


def test_at_the_quick_budget_only_the_tables_that_say_so_are_left_with_one_seed():
    graph = graph_of([read_plan("paper")], Choice("quick"))
    assert [table.name for _, table in graph.tables] == ["main", "nsinv-beta"]
    assert {cell.seed for cell, _ in graph.cells} == {42}
    asked = graph_of([read_plan("paper")], Choice("quick", (1, 2), tables=("strategy",)))
    assert {cell.seed for cell, _ in asked.cells} == {1, 2}


def test_what_cannot_work_together_is_told_with_its_line_before_anything_runs():
    text = 'title = "Mine"\n[[table]]\nname = "a"\nproblems = ["decay.py"]\nmethods = ["oracle"]\n'
    with pytest.raises(UserError) as caught:
        graph_of([parse_plan(Source("mine.toml", text))], Choice("quick"))
    assert str(caught.value) == "mine.toml, line 4: there is no file decay.py"
    with pytest.raises(UserError) as caught:
        address("unlearning = { layers = -1 }")
    assert str(caught.value).startswith("mine.toml, line 11: layers must be a count")
    with pytest.raises(UserError) as caught:
        address("unlearning = { share = 0.5, cut = 0.5 }")
    assert "'share' and 'cut' are of two different rules" in str(caught.value)


def test_the_oracle_of_a_problem_file_is_refused_with_its_line(decay):
    with pytest.raises(UserError, match=r"decay.toml, line \d+: .*oracle"):
        decay(PLAN.replace('["pinn", "ppinn"]', '["pinn", "oracle"]'))
