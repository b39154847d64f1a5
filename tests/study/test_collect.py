"""From a store to records for programs: what main.json promises."""

from __future__ import annotations

import json

import pytest
from tests.study.conftest import Studied
from tests.study.test_execute import CONTRACT

from unpinn.study import Choice, Source, Store, graph_of, parse_plan
from unpinn.study._collect import collect, frame, main_records, write_parquet
from unpinn.study._compare import COLUMNS


def test_every_cell_and_seed_has_a_record_with_the_promised_keys(studied):
    records = collect(studied.graph, studied.store, "quick")
    assert len(records) == len(studied.graph.cells) == 8
    for record in records:
        assert record.keys() >= CONTRACT
        assert record["budget"] == "quick" and record["study"] == "decay"
        assert record["status"] == "finished"


def test_comparisons_promise_the_same_keys():
    assert {*COLUMNS} == CONTRACT | {"unknowns"}


def test_each_run_is_once_among_the_main_records_in_jsons_types(studied):
    found = main_records(collect(studied.graph, studied.store, "quick"))
    assert len(found) == 6
    assert len({record["address"] for record in found}) == 6
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_runs_that_are_missing_or_failed_are_told_so(studied, tmp_path):
    store = Store(tmp_path)
    first, *others = studied.graph.nodes
    store.publish_failure(first, "it broke")
    records = {r["address"]: r for r in collect(studied.graph, store, "quick")}
    assert records[first]["status"] == "failed" and records[first]["reason"] == "it broke"
    assert all(records[a]["status"] == "missing" for a in others)
    assert all(r.keys() >= CONTRACT and r["l2re"] is None for r in records.values())
    # What has not ended is not among the results.
    assert [r["address"] for r in main_records(records.values())] == [first]


@pytest.mark.parametrize(
    ("settings", "noise"),
    [("", "paper"), ('preset = "released"', "released"), ("noise = { high = 0.5 }", "custom")],
)
def test_records_say_whose_noise_it_is(tmp_path, settings, noise):
    text = (
        f'title = "t"\n[[table]]\nname = "a"\nproblems = ["heat"]\nmethods = ["pinn"]\n{settings}'
    )
    graph = graph_of([parse_plan(Source("mine.toml", text))], Choice("quick"))
    (record,) = collect(graph, Store(tmp_path), "quick")
    assert (record["problem"], record["noise"], record["seed"]) == ("heat", noise, 42)


def test_all_records_can_be_read_back_as_a_table(studied: Studied, tmp_path):
    import pandas

    records = collect(studied.graph, studied.store, "quick")
    write_parquet(tmp_path / "records.parquet", records)
    found = pandas.read_parquet(tmp_path / "records.parquet")
    pandas.testing.assert_frame_equal(found, frame(records), check_dtype=False)
    assert {"problem", "seed", "unknowns.rate", "environment.machine"} <= {*found.columns}
    rates = [record["unknowns"]["rate"] for record in records]
    assert found["unknowns.rate"].tolist() == rates
    assert json.loads(found["unlearning"].iloc[-1]) == records[-1]["unlearning"]
