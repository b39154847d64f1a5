"""Where runs are kept, and how they travel."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.study.conftest import Studied

from unpinn import UserError
from unpinn._files import write_arrays
from unpinn.study import Store, missing
from unpinn.study._collect import collect
from unpinn.study._store import BusyError


@pytest.fixture
def taken(studied: Studied, tmp_path) -> Store:
    """A store that has taken over all runs."""
    store = Store(tmp_path / "taken")
    assert store.take(studied.store, studied.graph.nodes) == 6
    return store


def test_runs_that_were_taken_over_count_as_done_and_say_the_same(studied, taken):
    assert missing(studied.graph, taken) == []
    for address in studied.graph.nodes:
        assert taken.record(address) == studied.store.record(address)
        assert not taken.has_fit(address)
    assert collect(studied.graph, taken, "quick") == collect(studied.graph, studied.store, "quick")
    # No directory of a run: everything is in one file, sorted, so that versions compare well.
    assert {path.name for path in taken.path.iterdir() if path.name != "lock"} == {"records.jsonl"}
    lines = (taken.path / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["address"] for line in lines] == sorted(studied.graph.nodes)


def test_taking_over_again_changes_nothing(studied, taken):
    before = (taken.path / "records.jsonl").read_bytes()
    assert taken.take(studied.store, studied.graph.nodes) == 0
    assert (taken.path / "records.jsonl").read_bytes() == before


def test_what_was_taken_over_can_be_taken_on(studied, taken, tmp_path):
    third = Store(tmp_path / "third")
    assert third.take(taken, studied.graph.nodes) == 6
    content = [(store.path / "records.jsonl").read_bytes() for store in (taken, third)]
    assert content[0] == content[1]


def test_a_failure_travels_without_the_names_of_the_machines_files(tmp_path):
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    one.publish_failure("0" * 16, "it broke", "File /home/somebody/secret.py")
    assert other.take(one, ["0" * 16]) == 1
    assert other.failure("0" * 16)["reason"] == "it broke" and not other.done("0" * 16)
    assert "somebody" not in (other.path / "records.jsonl").read_text()


def test_fields_travel_only_where_they_are_drawn(studied, tmp_path):
    store = Store(tmp_path / "store")
    first, second, *_ = studied.graph.nodes
    about = {"axes": ["t", "x"], "shape": [2, 2], "at": {}}
    for address in (first, second):
        place = store.place(address)
        place.path.mkdir(parents=True)
        place.metrics.write_text(studied.store.place(address).metrics.read_text())
        write_arrays(place.path / "fields.safetensors", {"u": np.arange(4.0)}, about)
    other = Store(tmp_path / "other")
    other.take(store, [first, second], drawn={first})
    arrays, told = other.fields(first)
    np.testing.assert_allclose(arrays["u"], np.arange(4.0), atol=1e-4)
    assert told["shape"] == [2, 2] and other.fields(second) is None


@pytest.mark.parametrize("line", ["{", "[]", '{"address": 3, "record": {}}', '{"address": "a"}'])
def test_a_damaged_line_is_told_with_its_number(studied, taken, line):
    path = taken.path / "records.jsonl"
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(UserError, match=r"records.jsonl, line 7: this is not a run"):
        taken.done(next(iter(studied.graph.nodes)))


def test_a_store_that_is_not_there_cannot_be_taken_from(tmp_path):
    with pytest.raises(UserError, match="there is no store"):
        Store(tmp_path / "new").take(Store(tmp_path / "gone"), [])


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot make the directory"):
        Store(tmp_path / "file").take(Store(tmp_path), [])


def test_a_run_is_held_by_one_process_at_a_time(tmp_path):
    store = Store(tmp_path)
    with store.claimed("0" * 16, {"a": 1}) as place:
        assert json.loads(place.configuration.read_text())["a"] == 1
        with pytest.raises(BusyError), Store(tmp_path).claimed("0" * 16, {}):
            pass
    with store.claimed("0" * 16, {}):
        pass


def test_answers_become_part_of_the_record(studied, tmp_path):
    store, address = Store(tmp_path), next(iter(studied.graph.nodes))
    place = store.place(address)
    place.path.mkdir(parents=True)
    place.metrics.write_text(studied.store.place(address).metrics.read_text())
    before = store.record(address)
    store.publish_afterwards(address, {"intervals.laplace": {"coverage": 0.9}})
    assert store.record(address) == before | {"intervals": {"laplace": {"coverage": 0.9}}}
