"""What a study would run and what that would cost, before anything is run."""

from __future__ import annotations

from dataclasses import dataclass

from unpinn.study._cost import Estimate
from unpinn.study._execute import missing
from unpinn.study._graph import Graph
from unpinn.study._progress import duration
from unpinn.study._store import Store


@dataclass(frozen=True)
class DryRun:
    """Rows, shared runs, and costs.

    Arguments:
        head: names of the columns.
        rows: one a table, problem and method.
        runs: how many runs there are.
        open: how many of them are missing.
        shared: how many runs others start from.
        served: how many start from those.
        seconds: of all missing ones on one core.
        longest: of the longest chain among them.
        measured: how many of the runs are of a kind that was timed in this store.
    """

    head: list[str]
    rows: list[list[str]]
    runs: int
    open: int
    shared: int
    served: int
    seconds: float
    longest: float
    measured: int

    def told(self, workers: int) -> list[str]:
        """The whole in a few lines.

        Arguments:
            workers: how many share the work.
        """
        left = max(self.seconds / workers, self.longest)
        basis = (
            "timed in this store"
            if self.measured == self.open and self.open
            else f"from times measured once, {self.measured} of {self.open} from this store"
        )
        return [
            f"{self.open} of {self.runs} runs are missing",
            f"{self.shared} baselines are trained once for {self.served} other runs",
            f"about {duration(self.seconds)} on one core, {duration(left)} with {workers} "
            f"workers ({basis})",
        ]


def dry_run(graph: Graph, store: Store) -> DryRun:
    """What is missing in a store, and what it would cost."""
    estimate = Estimate.of(graph.nodes.values(), store)
    open_ = {job.address for job in missing(graph, store)}
    seconds = {address: estimate.seconds(graph.nodes[address]) for address in open_}
    groups: dict[tuple[str, str, str], list[str]] = {}
    for cell, address in graph.cells:
        key = (cell.table.name, cell.problem.label, cell.method.label)
        groups.setdefault(key, []).append(address)
    rows, counted = [], set()
    for (table, problem, method), addresses in groups.items():
        runs = dict.fromkeys(addresses)
        # A run that fills several tables costs once, where it stands first.
        new = [a for a in runs if a in open_ and a not in counted]
        counted |= {*new}
        cost = duration(sum(seconds[a] for a in new)) if new else "-"
        there = sum(a not in open_ for a in runs)
        rows.append([table, problem, method, str(len(runs)), str(there), str(len(new)), cost])
    shared = graph.shared
    chains = [seconds[a] + seconds.get(graph.nodes[a].needs or "", 0.0) for a in open_]
    return DryRun(
        ["table", "problem", "method", "runs", "there", "to run", "cost on one core"],
        rows,
        len(graph.nodes),
        len(open_),
        len(shared),
        sum(len(others) for others in shared.values()),
        sum(seconds.values(), 0.0),
        max(chains, default=0.0),
        sum(estimate.knows(graph.nodes[address]) for address in open_),
    )
