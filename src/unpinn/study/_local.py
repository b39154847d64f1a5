"""Run a graph on this machine: in this process, or in processes that keep to their own cores.

The order is the plan's; a run is ready once the one it starts from is finished. Hands are threads
of a standard pool, each of which does a run itself (one thread a device, where JAX sees several)
or has it done by a process of its own.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from unpinn._errors import UserError
from unpinn.runs import Posed
from unpinn.study._environment import cores
from unpinn.study._perform import BUSY, DONE, FAILED, THERE, Job, Outcome, perform
from unpinn.study._process import WorkerProcess

# Seconds between looks at what others are doing.
_TICK = 0.5
# Memory that a run of the largest benchmark takes.
_MEMORY = 2.5e9

Tell = Callable[[Outcome | None], None]


@runtime_checkable
class Executor(Protocol):
    """Anything that gets jobs done in an order that respects what they need."""

    workers: int

    def run(self, jobs: Sequence[Job], tell: Tell) -> None:
        """Do all jobs, telling each outcome, and nothing from time to time."""
        ...


@runtime_checkable
class Hand(Protocol):
    """What does one job after another."""

    def perform(self, job: Job) -> Outcome:
        """Do a job."""
        ...

    def stop(self) -> None:
        """Keep a checkpoint of what is under way, and end."""
        ...


class InProcess:
    """All in this process: one run at a time on each device that JAX sees.

    Arguments:
        devices: on which devices; all of the default kind unless told.
    """

    def __init__(self, devices: Sequence[Any] | None = None):
        import jax

        self._devices = list(jax.devices() if devices is None else devices)
        self.workers = len(self._devices)

    def run(self, jobs: Sequence[Job], tell: Tell) -> None:
        """Do all jobs."""
        only = len(self._devices) == 1
        _drive(jobs, [_Thread(None if only else device) for device in self._devices], tell)


class LocalProcesses:
    """Processes on this machine, each pinned to cores of its own.

    Arguments:
        workers: how many; as many as there are cores and room in memory unless told.
    """

    def __init__(self, workers: int | None = None):
        if workers is not None and workers < 1:
            raise UserError(f"a study needs 1 worker or more, not {workers}")
        self.workers = usual_workers() if workers is None else workers

    def run(self, jobs: Sequence[Job], tell: Tell) -> None:
        """Do all jobs."""
        count = max(1, min(self.workers, len(jobs)))
        hands = [WorkerProcess(pinned) for pinned in share_cores(count)]
        try:
            _drive(jobs, hands, tell)
        finally:
            for hand in hands:
                hand.close()


def usual_workers() -> int:
    """One a core, as far as memory goes."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = int(4 * _MEMORY)
    return max(1, min(cores(), int(memory / _MEMORY)))


def share_cores(workers: int) -> list[tuple[int, ...]]:
    """Disjoint cores for each worker; nothing for anybody where there are fewer than workers.

    >>> [len(part) for part in share_cores(1)] == [cores()]
    True
    """
    if not hasattr(os, "sched_getaffinity"):
        return [()] * workers
    here = sorted(os.sched_getaffinity(0))
    if workers > len(here):
        return [()] * workers
    ends = [round(k * len(here) / workers) for k in range(workers + 1)]
    return [tuple(here[a:b]) for a, b in itertools.pairwise(ends)]


class _Thread:
    """A hand that works in this process, on a device of its own where there are several."""

    def __init__(self, device: Any):
        self._device, self._stopped = device, threading.Event()
        self._known: dict[str, Posed] = {}

    def perform(self, job: Job) -> Outcome:
        import jax

        place = contextlib.nullcontext()
        if self._device is not None:
            place = jax.default_device(self._device)
        with place:
            return perform(job, self._stopped.is_set, self._known)

    def stop(self) -> None:
        """The next chunk of epochs is the last."""
        self._stopped.set()


@dataclass(eq=False)
class _Board:
    """Which jobs wait, which are ready, and what became of the others."""

    jobs: Sequence[Job]
    finished: dict[str, Outcome] = field(default_factory=dict)
    waiting: list[Job] = field(default_factory=list)
    later: list[tuple[float, Job]] = field(default_factory=list)

    def __post_init__(self):
        self.waiting = list(self.jobs)

    def take(self) -> Job | None:
        """The first job that is ready, if any is."""
        due = [entry for entry in self.later if entry[0] <= time.monotonic()]
        ours = {job.address for job in self.jobs}
        for job in self.waiting:
            if job.needs is None or job.needs in self.finished or job.needs not in ours:
                self.waiting.remove(job)
                return job
        if due:
            self.later.remove(due[0])
            return due[0][1]
        return None

    def settle(self, job: Job, outcome: Outcome) -> list[Outcome]:
        """Note what became of a job; gives all outcomes that follow from it."""
        if outcome.status == BUSY:
            # Another process is at it: look again after everything else.
            self.later.append((time.monotonic() + 2.0, job))
            return []
        self.finished[job.address] = outcome
        if outcome.status in (DONE, THERE):
            return [outcome]
        lost = [other for other in self.waiting if other.needs == job.address]
        settled = [outcome]
        for other in lost:
            self.waiting.remove(other)
            settled += self.settle(other, blocked(other, outcome))
        return settled

    @property
    def open(self) -> bool:
        """Whether anything is left to begin."""
        return bool(self.waiting or self.later)


def blocked(job: Job, outcome: Outcome) -> Outcome:
    """The outcome of a job whose baseline failed."""
    return Outcome(job.address, FAILED, reason=f"its baseline failed ({outcome.reason})")


def _drive(jobs: Sequence[Job], hands: Sequence[Hand], tell: Tell) -> None:
    """Give every hand the next job that is ready until none is left."""
    board = _Board(jobs)
    free: queue.SimpleQueue[Hand] = queue.SimpleQueue()
    for hand in hands:
        free.put(hand)

    def work(job: Job) -> Outcome:
        hand = free.get()
        try:
            return hand.perform(job)
        finally:
            free.put(hand)

    with ThreadPoolExecutor(len(hands)) as pool:
        try:
            _loop(board, lambda job: pool.submit(work, job), len(hands), tell)
        except BaseException:
            for hand in hands:
                hand.stop()
            raise


def _loop(board: _Board, begin: Callable[[Job], Future[Outcome]], room: int, tell: Tell) -> None:
    running: dict[Future[Outcome], Job] = {}
    while board.open or running:
        while len(running) < room and (job := board.take()) is not None:
            running[begin(job)] = job
        if not running:
            time.sleep(_TICK)
        done, _ = wait(running, timeout=_TICK, return_when=FIRST_COMPLETED)
        for future in done:
            for outcome in board.settle(running.pop(future), future.result()):
                tell(outcome)
        tell(None)
