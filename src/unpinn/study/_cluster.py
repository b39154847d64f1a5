"""Run a graph on a cluster, or on any machines that a Dask scheduler knows.

The graph is handed to Dask as futures that depend on each other; Dask decides where and when, and
begins a run anew elsewhere when its worker is lost. The run then goes on from the checkpoint in
the store, which has to be a directory that all machines share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn.study._local import Tell, blocked
from unpinn.study._perform import BUSY, DONE, FAILED, THERE, Job, Outcome, perform

# Seconds between looks at a run that another process is at.
_PATIENCE = 1.0
_TICK = 0.5


class Cluster:
    """The workers of a Dask scheduler.

    Arguments:
        client: a `distributed.Client`.
    """

    def __init__(self, client: Any):
        self._client = client
        self.workers = self._count()

    def run(self, jobs: Sequence[Job], tell: Tell) -> None:
        """Do all jobs."""
        futures: dict[str, Any] = {}
        # The first of equal rank begins first, as in the plan.
        for rank, job in enumerate(jobs):
            needed = futures.get(job.needs) if job.needs else None
            futures[job.address] = self._client.submit(
                perform_text, _anywhere(job).text(), needed,
                key=f"unpinn-{job.address}-{time.time_ns()}", priority=-rank, pure=False,
            )  # fmt: skip
        try:
            self._watch(futures, tell)
        finally:
            if self._client.status == "running":
                self._client.cancel(list(futures.values()))

    def _watch(self, futures: dict[str, Any], tell: Tell) -> None:
        left = dict(futures)
        while left:
            ended = [address for address, future in left.items() if future.done()]
            self._check(left[address] for address in ended)
            for address in ended:
                tell(_outcome(address, left.pop(address)))
            self.workers = self._count()
            tell(None)
            if not ended:
                time.sleep(_TICK)

    def _check(self, ended: Iterable[Any]) -> None:
        """Raise where the scheduler is gone: it takes all futures along, which have not failed."""
        if any(future.status not in ("finished", "error") for future in ended):
            # The client notices a little later than its futures.
            time.sleep(_PATIENCE)
        if self._client.status != "running":
            raise UserError(
                "the Dask scheduler is gone; finished runs are in the store, and the same command "
                "goes on with the others"
            )

    def _count(self) -> int:
        return len(self._client.scheduler_info(n_workers=-1).get("workers", ()))


def perform_text(text: str, needed: dict[str, Any] | None = None) -> dict[str, Any]:
    """Do the job that a text describes, on a worker; waits while another process is at it.

    Arguments:
        text: from `Job.text`.
        needed: the outcome of the run it starts from.
    """
    job = Job.of(text)
    if needed is not None and needed["status"] not in (DONE, THERE):
        return vars(blocked(job, Outcome(**needed)))
    unwanted = _unwanted_here()
    try:
        while (outcome := perform(job, unwanted)).status == BUSY and not unwanted():
            time.sleep(_PATIENCE)
    except KeyboardInterrupt:
        # Raised by a run that is told to stop; let through, it would end the whole worker.
        return vars(Outcome(job.address, BUSY, reason="its study has ended"))
    return vars(outcome)


def _unwanted_here() -> Callable[[], bool]:
    """Whether nobody waits for the task of this thread any more; Dask does not interrupt it."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return lambda: False
    key = worker.get_current_task()

    def unwanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return unwanted


def _anywhere(job: Job) -> Job:
    """A job whose files are found wherever it is done: workers have directories of their own."""
    settings = dict(job.run["configuration"])
    for name, file in (("problem", settings["problem"].endswith(".py")), ("data", True)):
        if file and settings[name] is not None:
            settings[name] = str(Path(settings[name]).resolve())
    return replace(job, run={**job.run, "configuration": settings})


def connect(scheduler: str | None, slurm: bool, workers: int | None) -> Cluster:
    """The workers of a scheduler, or jobs of a Slurm queue.

    Arguments:
        scheduler: its address, such as tcp://host:8786.
        slurm: submit workers to Slurm, as Dask's own configuration (jobqueue.slurm) describes.
        workers: how many Slurm jobs.
    """
    try:
        from distributed import Client
    except ImportError:
        raise UserError(
            "a cluster needs Dask, which is not installed; install unpinn[cluster]"
        ) from None
    if slurm:
        return Cluster(Client(_slurm(workers or 1)))
    try:
        return Cluster(Client(scheduler, timeout="10s"))
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"no Dask scheduler answers at {scheduler} ({reason})") from None


def _slurm(workers: int) -> Any:
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise UserError(
            "--slurm needs dask-jobqueue, which is not installed; install unpinn[cluster]"
        ) from None
    try:
        cluster = SLURMCluster()
    except (ValueError, TypeError) as error:
        raise UserError(
            f"Slurm jobs are not described well enough ({error}); state cores, memory and the "
            "like under jobqueue.slurm in Dask's configuration"
        ) from None
    cluster.scale(jobs=workers)
    return cluster


def _outcome(address: str, future: Any) -> Outcome:
    if future.status == "finished":
        return Outcome(**future.result())
    if future.status != "error":
        return Outcome(address, FAILED, reason=f"it was {future.status} on the cluster")
    error = future.exception()
    return Outcome(address, FAILED, reason=f"{type(error).__name__}: {error}")
