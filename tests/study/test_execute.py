"""Doing what is missing, once, and getting over failures and interruptions."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.study.conftest import Studied, substance, weights

import unpinn.study._perform as performing
from unpinn.study import InProcess, Store, missing, perform, run_study
from unpinn.study._perform import BUSY, DONE, FAILED, THERE
from unpinn.training._checkpoint import Checkpoint

CONTRACT = {
    "problem", "noise", "method", "recipe", "seed", "budget", "quantity", "l2re", "state_l2re",
    "seconds", "neurons_left", "detection_auc", "status",
}  # fmt: skip


class Nobody:
    """An executor that must not be asked."""

    workers = 1

    def run(self, jobs, tell):
        raise AssertionError(f"{len(jobs)} runs were begun anew")


@pytest.fixture
def copied(studied: Studied, tmp_path: Path) -> Store:
    """A copy of the store of the undisturbed study."""
    shutil.copytree(studied.store.path, tmp_path / "copy")
    return Store(tmp_path / "copy")


def addresses(studied: Studied, method: str, seed: int = 1) -> list[str]:
    """The runs of a method and a seed."""
    asked = {a: node.run.configuration for a, node in studied.graph.nodes.items()}
    return [a for a, c in asked.items() if (c.method, c.seed) == (method, seed)]


def forget(store: Store, *runs: str) -> None:
    for address in runs:
        shutil.rmtree(store.place(address).path)


def failing(monkeypatch, method: str) -> None:
    """From now on a method fails."""

    def run(name, task, run_method=performing.run_method):
        if name == method:
            raise RuntimeError("it broke")
        return run_method(name, task)

    monkeypatch.setattr(performing, "run_method", run)


def test_a_study_ends_with_every_run_in_its_store(studied):
    summary = studied.summary
    assert (summary.runs, summary.before, summary.failed) == (6, 0, {})
    for address in studied.graph.nodes:
        record = studied.store.record(address)
        assert record.keys() >= CONTRACT and record["status"] == "finished"
        assert record["address"] == address and record["environment"]["sources"]
        place = studied.store.place(address)
        assert studied.store.has_fit(address) and not place.checkpoints.exists()
        assert json.loads(place.metrics.read_text())[-1].keys() >= CONTRACT
        assert json.loads(place.configuration.read_text())["address"] == address


def test_nothing_that_is_done_is_done_again(studied):
    summary = run_study(studied.graph, studied.store, Nobody())
    assert (summary.runs, summary.before) == (6, 6)


def test_only_what_is_missing_is_done(studied, copied):
    one = addresses(studied, "ppinn")[0]
    before = substance(copied.record(one))
    forget(copied, one)
    assert [job.address for job in missing(studied.graph, copied)] == [one]
    summary = run_study(studied.graph, copied, InProcess())
    assert (summary.before, summary.failed) == (5, {})
    assert substance(copied.record(one)) == before


def test_a_failure_is_recorded_and_stops_nothing_else(studied, copied, monkeypatch):
    lost, kept = addresses(studied, "ppinn")[:1], addresses(studied, "pinn", 2)
    forget(copied, *lost, *kept)
    failing(monkeypatch, "ppinn")
    summary = run_study(studied.graph, copied, InProcess())
    assert summary.failed == dict.fromkeys(lost, "RuntimeError: it broke")
    for address in lost:
        failure = copied.failure(address)
        assert failure["reason"] == "RuntimeError: it broke" and "run_method" in failure["details"]
        assert not copied.done(address)
    assert all(copied.done(address) for address in kept)
    monkeypatch.undo()
    assert run_study(studied.graph, copied, InProcess()).failed == {}
    assert all(copied.failure(a) is None and copied.done(a) for a in lost)
    assert not (copied.place(lost[0]).path / "failure.json").exists()


def test_what_starts_from_a_failure_fails_with_its_reason(studied, copied, monkeypatch):
    (baseline,), others = addresses(studied, "pinn"), addresses(studied, "ppinn")
    forget(copied, baseline, *others)
    failing(monkeypatch, "pinn")
    summary = run_study(studied.graph, copied, InProcess())
    assert summary.failed.pop(baseline) == "RuntimeError: it broke"
    assert summary.failed == dict.fromkeys(others, "its baseline failed (RuntimeError: it broke)")
    assert all(copied.failure(a)["reason"] == summary.failed[a] for a in others)


@pytest.mark.slow
def test_without_weights_all_records_stay_and_a_baseline_is_trained_again_only_where_needed(
    studied, copied
):
    run_study(studied.graph, copied, Nobody(), keep_weights=False)
    assert not any(copied.has_fit(address) for address in studied.graph.nodes)
    assert missing(studied.graph, copied) == []
    (baseline,), (one, _) = addresses(studied, "pinn"), addresses(studied, "ppinn")
    told = copied.place(baseline).metrics.read_bytes()
    forget(copied, one)
    assert [job.address for job in missing(studied.graph, copied)] == [baseline, one]
    run_study(studied.graph, copied, InProcess(), keep_weights=False)
    assert copied.place(baseline).metrics.read_bytes() == told
    assert substance(copied.record(one)) == substance(studied.store.record(one))
    assert not copied.has_fit(baseline) and not copied.has_fit(one)


def test_a_baseline_keeps_its_weights_for_what_has_failed(studied, copied, monkeypatch):
    one = addresses(studied, "ppinn")[0]
    forget(copied, one)
    failing(monkeypatch, "ppinn")
    run_study(studied.graph, copied, InProcess(), keep_weights=False)
    (baseline,), (other,) = addresses(studied, "pinn"), addresses(studied, "pinn", 2)
    assert copied.has_fit(baseline) and not copied.has_fit(other)


def test_an_interrupted_run_goes_on_inside_and_ends_the_same(studied, tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    (job, *_) = missing(studied.graph, Store(tmp_path / "new"))
    looks = iter([False] * 3)
    with pytest.raises(KeyboardInterrupt):
        perform(job, lambda: next(looks, True))
    store = Store(tmp_path / "new")
    assert not store.done(job.address) and any(store.place(job.address).checkpoints.rglob("*"))
    seen: list[int] = []

    def note(self, moment):
        seen.append(moment.epoch)

    monkeypatch.setattr(performing._Teller, "__call__", note)
    assert perform(job).status == DONE
    assert seen and min(seen) > 1
    assert substance(store.record(job.address)) == substance(studied.store.record(job.address))
    assert weights(store, job.address) == weights(studied.store, job.address)
    assert perform(job).status == THERE


def test_a_run_that_another_process_holds_is_left_to_it(studied, tmp_path):
    (job, *_) = missing(studied.graph, Store(tmp_path / "new"))
    with Store(tmp_path / "new").claimed(job.address, {}):
        assert perform(job).status == BUSY
    assert not Store(tmp_path / "new").done(job.address)


def test_a_process_of_another_version_is_refused(studied, tmp_path):
    (job, *_) = missing(studied.graph, Store(tmp_path / "new"))
    outcome = perform(replace(job, address="0123456789abcdef"))
    assert outcome.status == FAILED and "the same versions" in outcome.reason
