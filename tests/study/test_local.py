"""Doing runs in processes and threads of this machine."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.study.conftest import ELSEWHERE, SLOWLY, substance, weights

from unpinn import UserError
from unpinn.study import Job, LocalProcesses, Outcome, Store, run_study
from unpinn.study._local import _Board, _drive, share_cores, usual_workers
from unpinn.study._perform import BUSY, DONE, FAILED, THERE
from unpinn.study._process import WorkerProcess, worker_environment

linux = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are not pinned")


def job(address: str, needs: str | None = None) -> Job:
    return Job(address, {}, needs, True, False, "store")


class Hand:
    """A hand that only says what it was given."""

    def __init__(self, done: list[str], fails: str = "", lasts: float = 0.0):
        self.done, self.fails, self.lasts, self.stopped = done, fails, lasts, threading.Event()

    def perform(self, job: Job) -> Outcome:
        if job.address == self.fails:
            raise RuntimeError("a hand is broken")
        self.stopped.wait(self.lasts)
        self.done.append(job.address)
        return Outcome(job.address, DONE)

    def stop(self) -> None:
        self.stopped.set()


# -- in which order ------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    needs=st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=1, max_size=10),
    ends=st.lists(st.sampled_from([DONE, THERE, FAILED]), min_size=10, max_size=10),
    data=st.data(),
)
def test_every_run_is_settled_once_and_none_before_what_it_needs(needs, ends, data):
    # A run may need any that stands before it.
    jobs = [job(str(k), None if n is None or n >= k else str(n)) for k, n in enumerate(needs)]
    board, settled, begun = _Board(jobs), {}, []
    running: list[Job] = []
    while board.open or running:
        while (taken := board.take()) is not None:
            assert taken.needs is None or settled[taken.needs].status != FAILED
            begun.append(taken.address)
            running.append(taken)
        ended = running.pop(data.draw(st.integers(0, len(running) - 1)))
        outcome = Outcome(ended.address, ends[int(ended.address)], reason="r")
        for each in board.settle(ended, outcome):
            assert each.address not in settled
            settled[each.address] = each
    assert {*settled} == {each.address for each in jobs}
    for each in jobs:
        if each.needs is not None and settled[each.needs].status == FAILED:
            assert settled[each.address].status == FAILED and each.address not in begun
            assert "its baseline failed" in settled[each.address].reason


def test_a_run_that_another_process_is_at_is_looked_at_again_later(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr("unpinn.study._local.time.monotonic", lambda: float(next(clock)))
    board = _Board([job("a"), job("b", "a"), job("c")])
    first = board.take()
    assert board.settle(first, Outcome("a", BUSY)) == []
    assert board.take().address == "c"
    looks = [board.take() for _ in range(4)]
    assert [j.address for j in looks if j is not None] == ["a"] and board.open
    board.settle(first, Outcome("a", THERE))
    assert board.take().address == "b"


def test_all_hands_work_at_once():
    done: list[str] = []
    hands = [Hand(done, lasts=0.3) for _ in range(4)]
    begin = time.monotonic()
    _drive([job(str(k)) for k in range(8)], hands, lambda outcome: None)
    assert sorted(done) == [str(k) for k in range(8)]
    assert time.monotonic() - begin < 8 * 0.3


def test_when_the_study_breaks_off_every_hand_is_stopped():
    done: list[str] = []
    hands = [Hand(done, fails="0", lasts=60.0), Hand(done, fails="0", lasts=60.0)]
    with pytest.raises(RuntimeError, match="a hand is broken"):
        _drive([job("0"), job("1")], hands, lambda outcome: None)
    assert all(hand.stopped.is_set() for hand in hands)


def test_whoever_watches_is_told_every_outcome_and_that_time_passes():
    told: list[Outcome | None] = []
    _drive([job("a"), job("b")], [Hand([])], told.append)
    assert [o.address for o in told if o is not None] == ["a", "b"] and None in told


# -- where ---------------------------------------------------------------------------------


@linux
def test_workers_have_cores_of_their_own(monkeypatch):
    for count in (1, 2, 3, 8):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=count: {*range(10, 10 + n)})
        for workers in range(1, count + 1):
            parts = share_cores(workers)
            assert sorted(core for part in parts for core in part) == [*range(10, 10 + count)]
            assert all(parts) and max(map(len, parts)) - min(map(len, parts)) <= 1
        # Nobody is pinned where that would leave two on one core.
        assert share_cores(count + 1) == [()] * (count + 1)


def test_a_pinned_process_has_as_many_threads_as_cores(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_some=1")
    one, two, free = (worker_environment(count) for count in (1, 2, 0))
    assert one["OMP_NUM_THREADS"] == one["NPROC"] == "1" and two["OMP_NUM_THREADS"] == "2"
    assert one["XLA_FLAGS"] == "--xla_some=1 --xla_cpu_multi_thread_eigen=false"
    assert two["XLA_FLAGS"] == free["XLA_FLAGS"] == "--xla_some=1"
    assert free.get("OMP_NUM_THREADS") == os.environ.get("OMP_NUM_THREADS")
    monkeypatch.setenv("XLA_FLAGS", one["XLA_FLAGS"])
    assert worker_environment(1)["XLA_FLAGS"] == one["XLA_FLAGS"]


def test_no_more_workers_than_memory_has_room_for(monkeypatch):
    monkeypatch.setattr("unpinn.study._local.cores", lambda: 64)
    for gigabytes, workers in ((1, 1), (8, 3), (1000, 64)):
        pages = {"SC_PAGE_SIZE": 10**6, "SC_PHYS_PAGES": gigabytes * 1000}
        monkeypatch.setattr(os, "sysconf", pages.__getitem__)
        assert usual_workers() == workers


def test_fewer_than_one_worker_is_refused():
    with pytest.raises(UserError, match="1 worker or more, not 0"):
        LocalProcesses(0)


# -- with real processes -------------------------------------------------------------------


@pytest.mark.slow
def test_worker_processes_get_the_results_of_this_process(studied, tmp_path):
    store = Store(tmp_path / "store")
    told: list[Outcome | None] = []

    class Watch:
        def begin(self, graph, store, open_, executor):
            assert len(open_) == 6

        def tell(self, outcome):
            told.append(outcome)

        def end(self):
            told.append(None)

    summary = run_study(studied.graph, store, LocalProcesses(2), watch=Watch())
    assert summary.failed == {}
    assert sorted(o.address for o in told if o is not None) == sorted(studied.graph.nodes)
    for address in studied.graph.nodes:
        assert substance(store.record(address)) == substance(studied.store.record(address))


@pytest.mark.slow
@linux
def test_a_worker_keeps_to_its_core(decay, tmp_path):
    core = min(os.sched_getaffinity(0))
    graph, store = decay(more=SLOWLY), Store(tmp_path / "store")
    hand = WorkerProcess((core,))
    try:
        (first, *_) = jobs(graph, store)
        assert hand.perform(first).status == DONE
        assert os.sched_getaffinity(hand.process_id) == {core}
        record = store.record(first.address)
        assert record["environment"]["cores"] == 1
    finally:
        hand.close()
    assert hand.process_id is None


@pytest.mark.slow
def test_a_killed_worker_costs_no_run_and_changes_no_number(decay, tmp_path):
    """Killed in the middle of a run, which another process then takes up inside."""
    graph, store = decay(more=SLOWLY, epochs=4_000), Store(tmp_path / "store")
    undisturbed = Store(tmp_path / "undisturbed")
    (first, *_) = jobs(graph, undisturbed)
    hand = WorkerProcess()
    try:
        assert hand.perform(first).status == DONE
        (first, *_) = jobs(graph, store)
        killer = threading.Thread(target=kill_when_under_way, args=(hand, store, first.address))
        killer.start()
        outcome = hand.perform(first)
        killer.join()
        assert outcome.status == DONE
    finally:
        hand.close()
    told = [substance(s.record(first.address)) for s in (store, undisturbed)]
    assert told[0] == told[1]
    assert weights(store, first.address) == weights(undisturbed, first.address)


@pytest.mark.slow
def test_a_run_that_takes_its_process_down_again_and_again_fails_and_the_rest_goes_on(
    decay, tmp_path
):
    deadly = f"{ELSEWHERE}\nimport os\nif elsewhere:\n    os.kill(os.getpid(), 9)\n"
    graph, store = decay(more=deadly), Store(tmp_path / "store")
    summary = run_study(graph, store, LocalProcesses(1))
    assert {*summary.failed} == {*graph.nodes}
    reasons = [reason for reason in summary.failed.values() if "baseline" not in reason]
    assert len(reasons) == 2 and all("ended by SIGKILL 3 times" in reason for reason in reasons)
    assert all(store.failure(address) is not None for address in graph.nodes)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_study_that_ends_takes_its_workers_along_and_goes_on_later(decay, tmp_path, how):
    graph, store = decay(more=SLOWLY, epochs=4_000), Store(tmp_path / "store")
    command = [
        sys.executable, "-m", "unpinn.cli", "study", str(tmp_path / "decay.toml"),
        "--budget", "quick", "--store", str(store.path), "--workers", "1",
    ]  # fmt: skip
    first = next(iter(graph.nodes))
    study = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    process = wait_until_under_way(store, first)
    study.send_signal(how)
    told = study.communicate(timeout=60)[1]
    wait_until_gone(process)
    assert not store.done(first) and any(store.place(first).checkpoints.rglob("*"))
    if how == signal.SIGINT:
        assert study.returncode == 130 and "goes on where it stopped" in told
    subprocess.run(command, check=True, capture_output=True)
    assert all(store.done(a) for a, n in graph.nodes.items() if n.run.configuration.seed == 1)


_TWO_DEVICES = """
import json, sys, threading
import jax
from tests.study.conftest import decay_in, substance
from pathlib import Path
from unpinn.study import InProcess, Store, run_study

assert len(jax.devices()) == 2
folder = Path(sys.argv[1])
graph, store = decay_in(folder), Store(folder / "store")
executor = InProcess()
assert executor.workers == 2
summary = run_study(graph, store, executor)
assert not summary.failed, summary.failed
records = [store.record(address) for address in graph.nodes]
print(json.dumps([record["environment"]["device"] for record in records]))
print(json.dumps({record["address"]: substance(record) for record in records}))
"""


@pytest.mark.slow
def test_several_devices_of_one_process_share_the_runs(studied, tmp_path):
    flag = "--xla_force_host_platform_device_count=2"
    environment = {
        **os.environ,
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flag}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-c", _TWO_DEVICES, str(tmp_path)],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    devices, records = map(json.loads, done.stdout.splitlines())
    # Both had some of the work, and the numbers are those of one device.
    assert len({*devices}) == 2
    there = {a: substance(studied.store.record(a)) for a in studied.graph.nodes}
    assert records == json.loads(json.dumps(there))


def jobs(graph, store) -> list[Job]:
    from unpinn.study import missing

    return missing(graph, store)


def wait_until_under_way(store: Store, address: str, patience: float = 300.0) -> int:
    """The process that is at a run, once the run has kept a checkpoint."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        told = store.progress(address)
        kept = store.place(address).checkpoints
        if told is not None and told["epoch"] > 0 and kept.is_dir() and any(kept.rglob("*.*")):
            return told["process"]
        time.sleep(0.02)
    raise AssertionError("the run was never under way")


def kill_when_under_way(hand: WorkerProcess, store: Store, address: str) -> None:
    os.kill(wait_until_under_way(store, address), signal.SIGKILL)


def wait_until_gone(process: int, patience: float = 30.0) -> None:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a worker was left behind")
