"""What a study would cost, and what is told while it goes."""

from __future__ import annotations

import io
import json
import re

import pytest
from tests.study.conftest import PLAN, Studied

from unpinn.study import (
    Choice,
    Lines,
    LiveTable,
    Outcome,
    Source,
    Store,
    dry_run,
    graph_of,
    parse_plan,
    read_plan,
)
from unpinn.study._cost import Estimate
from unpinn.study._perform import DONE, FAILED, THERE
from unpinn.study._progress import State, duration, watch_for
from unpinn.training import BUDGETS


class Two:
    """As many workers as that."""

    workers = 2


# -- before it begins ----------------------------------------------------------------------


def test_a_dry_run_counts_every_run_once_and_begins_none(studied, tmp_path):
    store = Store(tmp_path / "store")
    plan = dry_run(studied.graph, store)
    assert not store.path.exists()
    assert (plan.runs, plan.open, plan.shared, plan.served) == (6, 6, 2, 4)
    rows = [dict(zip(plan.head, row, strict=True)) for row in plan.rows]
    assert sum(int(row["to run"]) for row in rows) == 6
    assert sum(int(row["runs"]) for row in rows) == 6
    nodes = studied.graph.nodes.values()
    assert plan.seconds == pytest.approx(sum(node.seconds for node in nodes))
    one, two, many = (plan.told(workers)[-1] for workers in (1, 2, 100))
    assert one != two and f"{duration(plan.longest)} with 100 workers" in many


def test_a_dry_run_of_a_finished_study_has_nothing_to_do(studied):
    plan = dry_run(studied.graph, studied.store)
    assert (plan.open, plan.seconds, plan.longest) == (0, 0.0, 0.0)
    assert all(row[-1] == "-" for row in plan.rows)


def test_costs_follow_what_was_measured_in_the_store(studied):
    nodes = list(studied.graph.nodes.values())
    estimate = Estimate.of(nodes, studied.store)
    walls = [sum(studied.store.record(node.address)["wall"].values()) for node in nodes]
    for node in nodes:
        assert estimate.knows(node)
        assert min(walls) / 2 <= estimate.seconds(node) <= 2 * max(walls)
    assert not Estimate().knows(nodes[0])
    assert Estimate().seconds(nodes[0]) == nodes[0].seconds


def test_a_smaller_budget_costs_less():
    text = 'title = "t"\n[[table]]\nname = "a"\nproblems = ["heat"]\nmethods = ["pinn", "bpinn"]\n'
    plan = parse_plan(Source("mine.toml", text + 'protocol = "paper"'))
    costs = {}
    for budget in BUDGETS:
        nodes = [*graph_of([plan], Choice(budget, (42,))).nodes.values()]
        costs[budget] = [node.seconds for node in nodes]
        share = nodes[0].epochs / 25_000
        assert share == pytest.approx(BUDGETS[budget], rel=0.01)
    assert costs["quick"] < costs["short"] < costs["paper"]
    # A chain is shortened too where all is only to be looked at.
    assert costs["quick"][1] < costs["short"][1] == costs["paper"][1]


def test_the_quick_main_table_is_made_in_ten_minutes_on_two_cores(tmp_path):
    plan = dry_run(graph_of([read_plan("paper")], Choice("quick")), Store(tmp_path))
    assert max(plan.seconds / 2, plan.longest) < 600


# -- while it goes -------------------------------------------------------------------------


def under_way(store: Store, address: str, epoch: int, epochs: int = 100) -> None:
    place = store.place(address).path
    place.mkdir(parents=True, exist_ok=True)
    told = {"kind": "adam", "stage": 1, "stages": 1, "epoch": epoch, "epochs": epochs,
            "left": 30.0, "process": 1}  # fmt: skip
    (place / "progress.json").write_text(json.dumps(told))


def test_where_no_worker_is_left_that_is_said(studied, tmp_path):
    executor = Two()
    state = State(studied.graph, Store(tmp_path), [*studied.graph.nodes], executor)
    assert "about" in state.heading()
    executor.workers = 0
    assert state.heading() == "0/6 runs ended, waiting for workers: there is none"


def test_the_time_left_falls_as_runs_go_on_and_end(studied, tmp_path, monkeypatch):
    monkeypatch.setattr("unpinn.study._progress._LOOK", -1.0)
    store = Store(tmp_path)
    first, *others = studied.graph.nodes
    state = State(studied.graph, store, [first, *others], Two())
    left = [state.seconds_left()]
    for epoch in (10, 90):
        under_way(store, first, epoch)
        left.append(state.seconds_left())
    state.note(Outcome(first, THERE))
    left.append(state.seconds_left())
    for address in others:
        state.note(Outcome(address, DONE, seconds=1.0))
    assert left == sorted(left, reverse=True) and len({*left}) == 4
    assert state.seconds_left() == 0.0
    assert state.heading() == "6/6 runs ended, 0 under way, about 0 s left"


def test_lines_tell_every_end_with_its_error_or_its_reason(studied, tmp_path):
    first, second, third, *_ = studied.graph.nodes
    with (tmp_path / "told").open("w") as stream:
        lines = watch_for(stream)
        assert isinstance(lines, Lines)
        lines.begin(studied.graph, Store(tmp_path), [first, second, third], Two())
        lines.tell(Outcome(first, DONE, seconds=90.0, l2re=0.1234))
        lines.tell(None)
        lines.tell(Outcome(second, FAILED, reason="it broke"))
        lines.tell(Outcome(third, THERE))
        lines.end()
    told = (tmp_path / "told").read_text().splitlines()
    assert re.match(r"3 runs to do \(3 are there\), about \d+ s$", told[0])
    labels = studied.graph.labels
    assert told[1].endswith(f"{labels(first)}: error 0.123 in 1 min 30 s")
    assert told[2].endswith(f"{labels(second)}: failed, it broke")
    assert told[3].startswith("[3/3, 0 s left]") and told[3].endswith(", there already")
    assert len(told) == 4


def test_the_live_table_shows_what_is_under_way_and_what_has_ended(studied: Studied, tmp_path):
    from rich.console import Console

    store, stream = Store(tmp_path), io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, color_system=None)
    table = LiveTable(console)
    first, second, third, *_ = studied.graph.nodes
    under_way(store, first, 42)
    table.begin(studied.graph, store, [first, second, third], Two())
    table.tell(Outcome(second, FAILED, reason="it [bold]broke"))
    table.tell(Outcome(third, DONE, seconds=3.0, l2re=0.5))
    shown = Console(file=io.StringIO(), width=120)
    shown.print(table.table())
    text = shown.file.getvalue()
    table.end()
    labels = studied.graph.labels
    assert labels(first) in text and "adam 1/1: 42 of 100" in text and "30 s of this stage" in text
    assert "finished, error 0.5" in text and "2/3 runs ended, 1 failed" in text
    # A failure's words stay on the screen as they are.
    assert "it [bold]broke" in stream.getvalue()


def test_labels_tell_variants_apart_where_these_make_a_difference(decay):
    graph = decay(PLAN)
    labels = [node.label for node in graph.nodes.values()]
    assert len({*labels}) == len(labels)
    assert "decay PINN, 1" in labels and "decay P-PINN few, 1" in labels
