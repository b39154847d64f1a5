"""How a study goes: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol, TextIO, runtime_checkable

from unpinn.study._cost import Estimate
from unpinn.study._graph import Graph
from unpinn.study._perform import DONE, FAILED, Outcome
from unpinn.study._store import Store

# A run that has told nothing for so many seconds is not shown as running.
_STALE = 60.0
# Seconds between lines that only say that all is well, where there is no terminal.
_HEARTBEAT = 60.0
_RECENT = 8
# Seconds for which a look at the runs under way is good.
_LOOK = 0.4


@runtime_checkable
class Watch(Protocol):
    """Anything that wants to be told how a study goes."""

    def begin(self, graph: Graph, store: Store, open_: Sequence[str], executor: Any) -> None:
        """It begins; so many runs are to be done."""
        ...

    def tell(self, outcome: Outcome | None) -> None:
        """A run has ended, or else some time has passed."""
        ...

    def end(self) -> None:
        """It has ended."""
        ...


class State:
    """Which runs are open, under way and ended, and how long the rest will take."""

    def __init__(self, graph: Graph, store: Store, open_: Sequence[str], executor: Any):
        self.graph, self.store = graph, store
        self.open = dict.fromkeys(open_)
        self.total = len(open_)
        self.ended: deque[Outcome] = deque(maxlen=_RECENT)
        self.done = self.failed = 0
        self._executor = executor
        self._running: tuple[float, list[tuple[str, dict[str, Any]]]] = (-math.inf, [])
        self._estimate = Estimate.of(graph.nodes.values(), store)

    def note(self, outcome: Outcome) -> None:
        """A run has ended."""
        self.open.pop(outcome.address, None)
        self.ended.append(outcome)
        if outcome.status == FAILED:
            self.failed += 1
            return
        self.done += 1
        if outcome.status == DONE:
            self._estimate.note(self.graph.nodes[outcome.address], outcome.seconds)

    def running(self) -> list[tuple[str, dict[str, Any]]]:
        """The runs under way, with what they last told."""
        looked, running = self._running
        if time.monotonic() - looked > _LOOK:
            begun = self.store.begun()
            told = ((a, self.store.progress(a)) for a in self.open if a in begun)
            running = [(a, p) for a, p in told if p is not None and p["age"] < _STALE]
            self._running = time.monotonic(), running
        return [(a, p) for a, p in running if a in self.open]

    def seconds_left(self) -> float:
        """Until the end, if the workers stay as many and as fast."""
        under_way = dict(self.running())
        parts = []
        for address in self.open:
            seconds = self._estimate.seconds(self.graph.nodes[address])
            parts.append(seconds * (1 - _share(under_way.get(address))))
        return max(sum(parts) / max(1, self._executor.workers), max(parts, default=0.0))

    def heading(self) -> str:
        """One line on all of it."""
        failed = f", {self.failed} failed" if self.failed else ""
        ended = f"{self.done + self.failed}/{self.total} runs ended{failed}, "
        if not self._executor.workers:
            return f"{ended}waiting for workers: there is none"
        return f"{ended}{len(self.running())} under way, about {duration(self.seconds_left())} left"

    def line(self, outcome: Outcome) -> str:
        """One line on a run that has ended."""
        label = self.graph.labels(outcome.address)
        if outcome.status == FAILED:
            return f"{label}: failed, {outcome.reason}"
        error = "" if outcome.l2re is None else f" error {outcome.l2re:.3g}"
        took = f" in {duration(outcome.seconds)}" if outcome.status == DONE else ", there already"
        return f"{label}:{error}{took}"


class Lines:
    """A line for every run that ends."""

    def __init__(self, stream: TextIO | None = None):
        self._stream = stream or sys.stderr
        self._state: State | None = None
        self._last = time.monotonic()

    def begin(self, graph: Graph, store: Store, open_: Sequence[str], executor: Any) -> None:
        """Say how much there is to do."""
        self._state = State(graph, store, open_, executor)
        there = len(graph.nodes) - len(open_)
        left = duration(self._state.seconds_left())
        self._say(f"{len(open_)} runs to do ({there} are there), about {left}")

    def tell(self, outcome: Outcome | None) -> None:
        """Say what ended, and now and then how it goes."""
        assert self._state is not None
        if outcome is not None:
            self._state.note(outcome)
            ended, total = self._state.done + self._state.failed, self._state.total
            left = duration(self._state.seconds_left())
            self._say(f"[{ended}/{total}, {left} left] {self._state.line(outcome)}")
        elif time.monotonic() - self._last > _HEARTBEAT:
            self._say(self._state.heading())

    def end(self) -> None:
        """Nothing is open."""

    def _say(self, text: str) -> None:
        self._last = time.monotonic()
        print(text, file=self._stream, flush=True)


class LiveTable:
    """A table that is redrawn: what is under way, and what ended last."""

    def __init__(self, console: Any = None):
        from rich.console import Console

        self._console = console or Console(stderr=True)
        self._live: Any = None
        self._state: State | None = None

    def begin(self, graph: Graph, store: Store, open_: Sequence[str], executor: Any) -> None:
        """Draw it."""
        from rich.live import Live

        self._state = State(graph, store, open_, executor)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()
        self.tell(None)

    def tell(self, outcome: Outcome | None) -> None:
        """Draw it again; a failure stays on the screen above."""
        assert self._state is not None
        if outcome is not None:
            self._state.note(outcome)
            if outcome.status == FAILED:
                self._console.print(self._state.line(outcome), markup=False)
        self._live.update(self.table(), refresh=True)

    def end(self) -> None:
        """Leave the last state behind."""
        self._live.stop()
        if self._state is not None:
            self._console.print(self._state.heading(), markup=False)

    def table(self) -> Any:
        """The table as it is now."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        assert self._state is not None
        table = Table(
            title=self._state.heading(), title_justify="left", box=box.SIMPLE, expand=False
        )
        table.add_column("run")
        table.add_column("how far")
        table.add_column("left or took", justify="right")
        for address, told in self._state.running():
            left = "" if told["left"] is None else f"{duration(told['left'])} of this stage"
            how_far = f"{told['kind']} {told['stage']}/{told['stages']}: {told['epoch']}"
            table.add_row(
                Text(self._state.graph.labels(address)), f"{how_far} of {told['epochs']}", left
            )
        for outcome in reversed(self._state.ended):
            failed = outcome.status == FAILED
            error = "" if outcome.l2re is None else f"error {outcome.l2re:.3g}"
            table.add_row(
                Text(self._state.graph.labels(outcome.address)),
                Text("failed", "red") if failed else Text(f"finished, {error}", "green"),
                duration(outcome.seconds),
            )
        return table


def watch_for(stream: TextIO | None = None) -> Watch:
    """A live table where there is a terminal, lines elsewhere."""
    stream = stream or sys.stderr
    return LiveTable() if stream.isatty() else Lines(stream)


def duration(seconds: float | int) -> str:
    """Seconds in words.

    >>> duration(5), duration(90), duration(7500), duration(100_000)
    ('5 s', '1 min 30 s', '2 h 5 min', '27 h 46 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _share(told: dict[str, Any] | None) -> float:
    """How much of a run is behind it, by the epochs of its stage."""
    if told is None:
        return 0.0
    stages, epochs = max(1, told["stages"]), max(1, told["epochs"])
    return min(1.0, (told["stage"] - 1 + told["epoch"] / epochs) / stages)
