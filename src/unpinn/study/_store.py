"""Where runs are kept, each in a directory named by what decides its numbers.

    STORE/runs/0123456789abcdef/
        configuration.json    what the run is; written first
        progress.json         where it is, while it is under way
        checkpoints/          its state, while it is under way
        fit/                  the result with its weights, unless they are not kept
        fields.safetensors    the reconstructed fields on a grid for pictures
        metrics.json          its record; written last, so a directory with it is finished
        afterwards.json       what was asked of the network later on
        failure.json          instead: why it failed

Every file appears by a rename, never half written. The system's lock on a directory keeps two
processes from the same run, and is freed with its process however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn._files import read_arrays, read_json, sweep, write_arrays, write_json
from unpinn.problem import Problem
from unpinn.runs import RunDirectory
from unpinn.runs._directory import FORMAT
from unpinn.runs._lock import locked
from unpinn.training import Fit, load


class BusyError(Exception):
    """Another process is at this run."""


@dataclass(frozen=True)
class Store:
    """A directory of runs.

    Arguments:
        path: of the directory; made when the first run begins.
    """

    path: Path

    def place(self, address: str) -> RunDirectory:
        """A run's directory."""
        return RunDirectory(self.path / "runs" / address)

    # -- what is there ---------------------------------------------------------------------

    def done(self, address: str) -> bool:
        """Whether the run is finished."""
        return self.place(address).finished

    def has_fit(self, address: str) -> bool:
        """Whether its weights are there."""
        return (self.place(address).fit / "fit.json").exists()

    def record(self, address: str) -> dict[str, Any] | None:
        """What the run achieved, if it is finished, with what was asked of it later on."""
        if not self.done(address):
            return None
        return read_json(self.place(address).metrics)[-1] | nested(self.afterwards(address))

    def afterwards(self, address: str) -> dict[str, Any]:
        """Answers that a finished run gave later on, by question."""
        path = self._afterwards(address)
        return read_json(path) if path.exists() else {}

    def failure(self, address: str) -> dict[str, Any] | None:
        """Why it failed, if it did and has not been finished since."""
        path = self.place(address).path / "failure.json"
        return read_json(path) if path.exists() and not self.done(address) else None

    def progress(self, address: str) -> dict[str, Any] | None:
        """Where it was when it last told, if it is under way."""
        path = self.place(address).path / "progress.json"
        with contextlib.suppress(OSError, ValueError):
            return {**json.loads(path.read_bytes()), "age": time.time() - path.stat().st_mtime}
        return None

    def fit(self, address: str, problem: Problem) -> Fit:
        """The result, without what it was made from."""
        return load(self.place(address).fit, problem)

    def fields(self, address: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The reconstructed fields and what their grid is."""
        path = self.place(address).path / "fields.safetensors"
        return read_arrays(path) if path.exists() else None

    def records(self) -> Iterator[dict[str, Any]]:
        """What every finished run achieved."""
        for metrics in sorted(self.path.glob("runs/*/metrics.json")):
            yield read_json(metrics)[-1]

    # -- making a run ----------------------------------------------------------------------

    @contextlib.contextmanager
    def claimed(self, address: str, content: Mapping[str, Any]) -> Iterator[RunDirectory]:
        """Hold a run's directory, or raise `BusyError`.

        Arguments:
            address: of the run.
            content: its settings, for whoever looks into the directory.
        """
        place = self.place(address)
        try:
            place.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"cannot make the directory {place.path}: {reason}") from None
        if not os.access(place.path, os.W_OK):
            raise UserError(f"cannot write in {place.path}; choose another store")
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(place.path))
            except UserError as error:
                raise BusyError(str(error)) from None
            sweep(place.path)
            if not place.configuration.exists():
                write_json(place.configuration, {"format": FORMAT, **content})
            yield place

    def publish(
        self,
        address: str,
        record: Mapping[str, Any],
        fit: Fit | None,
        fields: tuple[Mapping[str, np.ndarray], Any] | None,
    ) -> None:
        """Keep a result: everything under its final name in one step, the record last.

        Must be called while the run is claimed.

        Arguments:
            address: of the run.
            record: what it achieved.
            fit: its weights, if they are to be kept; what it was made from is kept elsewhere.
            fields: arrays for pictures and what their grid is.
        """
        place = self.place(address)
        if fit is not None:
            draft = place.checkpoints / "finished-fit"
            shutil.rmtree(draft, ignore_errors=True)
            replace(fit, before=None).save(draft)
            shutil.rmtree(place.fit, ignore_errors=True)
            os.rename(draft, place.fit)
        if fields is not None:
            write_arrays(place.path / "fields.safetensors", *fields)
        write_json(place.metrics, [record])
        (place.path / "failure.json").unlink(missing_ok=True)
        self.clean(address)

    def publish_afterwards(self, address: str, answers: Mapping[str, Any]) -> None:
        """Keep what a finished run answered later on."""
        write_json(self._afterwards(address), answers)

    def publish_failure(self, address: str, reason: str, details: str = "") -> None:
        """Keep the reason of a failure; checkpoints stay, so that a repetition can go on."""
        place = self.place(address)
        place.path.mkdir(parents=True, exist_ok=True)
        about = {"reason": reason, "details": details, "time": now()}
        write_json(place.path / "failure.json", about)
        (place.path / "progress.json").unlink(missing_ok=True)

    def clean(self, address: str) -> None:
        """Discard what only an unfinished run needs."""
        place = self.place(address)
        shutil.rmtree(place.checkpoints, ignore_errors=True)
        (place.path / "progress.json").unlink(missing_ok=True)

    def _afterwards(self, address: str) -> Path:
        return self.place(address).path / "afterwards.json"

    def drop_weights(self, address: str) -> None:
        """Discard a finished run's weights; its record and its fields stay."""
        if self.done(address):
            shutil.rmtree(self.place(address).fit, ignore_errors=True)


def now() -> str:
    """The time, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def nested(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Answers by question as parts of a record: "intervals.laplace" under intervals and laplace.

    >>> nested({"forgetting": {"distance": 0.1}, "intervals.laplace": {"coverage": 0.9}})
    {'forgetting': {'distance': 0.1}, 'intervals': {'laplace': {'coverage': 0.9}}}
    """
    found: dict[str, Any] = {}
    for question, answer in answers.items():
        group, dot, part = question.partition(".")
        if dot:
            found.setdefault(group, {})[part] = answer
        else:
            found[group] = answer
    return found
