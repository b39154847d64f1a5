"""Do one run of a study, in whatever process: the only place where a study computes anything."""

from __future__ import annotations

import contextlib
import json
import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn._files import plain
from unpinn.rivals import Task, method_named, run_method
from unpinn.runs import Posed, metrics_record
from unpinn.study._environment import environment
from unpinn.study._reconstruction import reconstruction
from unpinn.study._run import Run, address_of
from unpinn.study._store import BusyError, Store
from unpinn.training import Fit, Moment

DONE, THERE, FAILED, BUSY = "done", "there", "failed", "busy"


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Arguments:
        address: of the run.
        status: "done" now, "there" before, "failed", or "busy" in another process.
        seconds: that it took, all in all.
        reason: of a failure.
        l2re: its headline error, for whoever watches.
    """

    address: str
    status: str
    seconds: float = 0.0
    reason: str = ""
    l2re: float | None = None


@dataclass(frozen=True)
class Job:
    """A run as it is handed to a process: plain words, nothing that has to be trusted.

    Arguments:
        address: that the run must have.
        run: its settings.
        needs: the address of the run it starts from.
        keep: whether to keep the weights.
        start: whether others start from it, and need its weights.
        store: where.
    """

    address: str
    run: Mapping[str, Any]
    needs: str | None
    keep: bool
    start: bool
    store: str

    def text(self) -> str:
        """As one line."""
        return json.dumps(vars(self))

    @classmethod
    def of(cls, text: str) -> Job:
        """Read back what `text` gave."""
        return cls(**json.loads(text))


def perform(
    job: Job, stop: Callable[[], bool] | None = None, known: dict[str, Posed] | None = None
) -> Outcome:
    """Do a run, or find that it was done; a failure is recorded and returned, not raised.

    Arguments:
        job: the run.
        stop: asked from time to time; once true, the run keeps a checkpoint and ends as an
            interruption does.
        known: keeps what runs share from one call to the next.
    """
    store, begin = Store(Path(job.store)), time.perf_counter()
    try:
        run = Run.from_dict(job.run)
        posed = run.posed(known)
        if address_of(run, posed) != job.address:
            raise UserError(
                "this process computes another address for the run than the one that sent it; "
                "use the same versions of unpinn and Python everywhere"
            )
        with store.claimed(job.address, description(run, posed, job.address)):
            if store.done(job.address) and (store.has_fit(job.address) or not job.start):
                record = store.record(job.address) or {}
                return Outcome(job.address, THERE, l2re=record.get("l2re"))
            record = _run_and_publish(store, job, run, posed, stop, begin)
        return Outcome(job.address, DONE, time.perf_counter() - begin, l2re=record["l2re"])
    except BusyError as error:
        return Outcome(job.address, BUSY, reason=str(error))
    except Exception as error:
        reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        with contextlib.suppress(UserError):
            store.publish_failure(job.address, reason, traceback.format_exc())
        return Outcome(job.address, FAILED, time.perf_counter() - begin, reason)


def description(run: Run, posed: Posed, address: str) -> dict[str, Any]:
    """What is written into a run's directory first."""
    about = posed.description()
    return {**about, "unlearning": run.unlearning, "network": run.network, "address": address}


def _run_and_publish(
    store: Store, job: Job, run: Run, posed: Posed, stop: Callable[[], bool] | None, begin: float
) -> dict[str, Any]:
    place = store.place(job.address)
    method = method_named(run.configuration.method)
    task = Task(
        posed.problem, posed.observations, posed.protocol, run.configuration.seed,
        baseline=store.fit(job.needs, posed.problem) if job.needs else None,
        # Where nothing is unlearned there is no recipe, and none in the address.
        recipe=posed.recipe if method.needs_baseline else None,
        true_sigma=posed.sigma_true if method.needs_truth else None,
        options=dict(run.configuration.options),
        directory=place.checkpoints,
        watcher=_Teller(place.path / "progress.json", stop),
    )  # fmt: skip
    started = time.perf_counter()
    fit = run_method(method.name, task)
    worked = time.perf_counter() - started
    if fit.before is None and task.baseline is not None:
        fit = replace(fit, before=task.baseline)
    fields = reconstruction(fit, posed)
    record = metrics_record(fit, posed) | {
        "noise_settings": dict(run.configuration.noise),
        "unlearning": dict(run.unlearning),
        "network": dict(run.network),
        "address": job.address,
        "epochs": _epochs(fit),
        "timings": dict(fit.seconds),
        "environment": environment(),
    }
    judged = time.perf_counter() - started - worked
    record["wall"] = {"before": started - begin, "method": worked, "judging": judged}
    record = plain(record)
    store.publish(job.address, record, fit if job.keep or job.start else None, fields)
    return record


def _epochs(fit: Fit) -> int:
    """Epochs and iterations that were really run, those of the baseline not counted."""
    return len(fit.history)


class _Teller:
    """A watcher that writes down where the run is, and ends it when told."""

    def __init__(self, path: Path, stop: Callable[[], bool] | None, interval: float = 1.0):
        self._path, self._stop, self._interval = path, stop, interval
        self._last = 0.0
        self._part = 1

    def __call__(self, moment: Moment) -> None:
        """Write, at most once in a while."""
        if self._stop is not None and self._stop():
            # The training loop keeps a checkpoint on its way out, as for Ctrl-C.
            raise KeyboardInterrupt
        if time.monotonic() - self._last < self._interval:
            return
        self._last = time.monotonic()
        about = {
            "kind": moment.kind, "stage": moment.stage, "stages": moment.stages,
            "epoch": moment.epoch, "epochs": moment.epochs, "left": moment.seconds_left,
            "process": os.getpid(),
        }  # fmt: skip
        draft = self._path.with_name(f".progress.{os.getpid()}")
        # Losing it to a full disk or a power cut harms nothing, so it is not worth a flush.
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(about))
            os.replace(draft, self._path)
