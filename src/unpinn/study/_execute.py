"""Run a study: what is missing in its store, by whatever executor."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from unpinn.study._graph import Graph
from unpinn.study._local import Executor
from unpinn.study._perform import FAILED, Job, Outcome
from unpinn.study._progress import Watch
from unpinn.study._store import Store, make_directory


@dataclass(frozen=True)
class Summary:
    """How a study went.

    Arguments:
        runs: how many it has.
        before: how many were there before.
        failed: the others that failed, with the reasons, by address.
        seconds: from start to end.
    """

    runs: int
    before: int
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def missing(graph: Graph, store: Store, keep_weights: bool = True) -> list[Job]:
    """The jobs that are still to be done, in order.

    A finished run is done again only where its weights were not kept and others need them.
    """
    open_ = {address for address in graph.nodes if not store.done(address)}
    shared = graph.shared
    for start, others in shared.items():
        if open_.intersection(others) and not store.has_fit(start):
            open_.add(start)
    return [
        Job(
            node.address, node.run.to_dict(), node.needs, keep_weights,
            node.address in shared, str(Path(store.path).resolve()),
        )
        for node in graph.nodes.values()
        if node.address in open_
    ]  # fmt: skip


def run_study(
    graph: Graph,
    store: Store,
    executor: Executor,
    *,
    keep_weights: bool = True,
    watch: Watch | None = None,
) -> Summary:
    """Do all that is missing; failures are recorded, and do not stop the rest.

    Arguments:
        graph: what to run.
        store: where results are, and are put.
        executor: who does it.
        keep_weights: whether the fits stay in the store once nothing needs them any more.
        watch: is told how it goes.
    """
    begin = time.perf_counter()
    make_directory(store.path / "runs")
    jobs = missing(graph, store, keep_weights)
    failed: dict[str, str] = {}

    def tell(outcome: Outcome | None) -> None:
        if outcome is not None and outcome.status == FAILED:
            failed[outcome.address] = outcome.reason
            if store.failure(outcome.address) is None:
                store.publish_failure(outcome.address, outcome.reason)
        if watch is not None:
            watch.tell(outcome)

    if jobs:
        if watch is not None:
            watch.begin(graph, store, [job.address for job in jobs], executor)
        try:
            executor.run(jobs, tell)
        finally:
            if watch is not None:
                watch.end()
    if not keep_weights:
        shared = graph.shared
        for address in graph.nodes:
            # What failed may be begun anew, and then needs the run that it starts from.
            if all(store.done(other) for other in shared.get(address, ())):
                store.drop_weights(address)
    seconds = time.perf_counter() - begin
    return Summary(len(graph.nodes), len(graph.nodes) - len(jobs), failed, seconds)
