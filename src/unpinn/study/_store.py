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
    STORE/records.jsonl       runs that were taken over from other stores, a line each

Every file appears by a rename, never half written. The system's lock on a directory keeps two
processes from the same run, and is freed with its process however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn._files import (
    parsed,
    plain,
    read_arrays,
    read_json,
    sweep,
    write_arrays,
    write_json,
    write_text,
)
from unpinn.problem import Problem
from unpinn.runs import RunDirectory
from unpinn.runs._directory import FORMAT
from unpinn.runs._lock import locked
from unpinn.runs._metrics import check_records
from unpinn.study._sixteen import restored, shortened
from unpinn.training import Fit, load

_TAKEN = "records.jsonl"


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
        return self.place(address).finished or "record" in self._taken(address)

    def has_fit(self, address: str) -> bool:
        """Whether its weights are there."""
        return (self.place(address).fit / "fit.json").exists()

    def record(self, address: str) -> dict[str, Any] | None:
        """What the run achieved, if it is finished, with what was asked of it later on."""
        place = self.place(address)
        # A run that was taken over has a line in a file, and no directory of its own.
        record = (
            _last_record(place.metrics) if place.finished else self._taken(address).get("record")
        )
        return None if record is None else record | nested(self.afterwards(address))

    def afterwards(self, address: str) -> dict[str, Any]:
        """Answers that a finished run gave later on, by question."""
        path = self._afterwards(address)
        return _mapping(path) if path.exists() else {}

    def failure(self, address: str) -> dict[str, Any] | None:
        """Why it failed, if it did and has not been finished since."""
        if self.done(address):
            return None
        path = self.place(address).path / "failure.json"
        failure = _mapping(path) if path.exists() else self._taken(address).get("failure")
        unknown = {"reason": "it does not say why", "time": ""}
        return None if failure is None else {**unknown, **failure}

    def progress(self, address: str) -> dict[str, Any] | None:
        """Where it was when it last told, if it is under way."""
        path = self.place(address).path / "progress.json"
        with contextlib.suppress(OSError, ValueError):
            told = parsed(path.read_bytes())
            if isinstance(told, dict):
                return {**told, "age": time.time() - path.stat().st_mtime}
        return None

    def fit(self, address: str, problem: Problem) -> Fit:
        """The result, without what it was made from."""
        return load(self.place(address).fit, problem)

    def fields(self, address: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The reconstructed fields and what their grid is."""
        path = self._fields(address)
        if not path.exists():
            return None
        arrays, about = read_arrays(path)
        try:
            return restored(arrays, about), about
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UserError(f"{path} does not hold fields as a study writes them") from None

    def begun(self) -> set[str]:
        """The addresses of runs that have a directory."""
        with contextlib.suppress(OSError):
            return {entry.name for entry in os.scandir(self.path / "runs")}
        return set()

    # -- runs of other stores --------------------------------------------------------------

    def take(self, other: Store, addresses: Iterable[str], drawn: Container[str] = ()) -> int:
        """Take over ended runs of another store, without their weights; gives how many.

        They come to lie in one file, so that a study's results can be kept under version control.

        Arguments:
            other: the other store.
            addresses: of the runs; those that have not ended there, or are done here, are left.
            drawn: of which of them the fields are taken too.
        """
        if not other.path.is_dir():
            raise UserError(f"there is no store {other.path} to take runs from")
        make_directory(self.path)
        with locked(self.path):
            taken, new = dict(self._all_taken()), 0
            for address in addresses:
                entry = None if self.done(address) else other._entry(address)
                if entry is None or entry == taken.get(address):
                    continue
                taken[address] = entry
                new += 1
                path = other._fields(address)
                if address in drawn and path.exists():
                    write_arrays(self._fields(address), *shortened(*read_arrays(path)))
            if new:
                lines = (_line(taken[address]) for address in sorted(taken))
                write_text(self.path / _TAKEN, "".join(lines))
        return new

    def _entry(self, address: str) -> dict[str, Any] | None:
        """A run that has ended, as a line of such a file."""
        place, record, failure = self.place(address), self.record(address), self.failure(address)
        if record is not None:
            told = {"record": record}
        elif failure is not None:
            # What it said in detail names files of the machine it was on.
            told = {"failure": {name: failure[name] for name in ("reason", "time")}}
        else:
            return None
        known = self._taken(address).get("configuration")
        there = place.configuration.exists()
        configuration = read_json(place.configuration) if there else known
        return {"address": address, "configuration": configuration, **told}

    def _taken(self, address: str) -> dict[str, Any]:
        return self._all_taken().get(address, {})

    def _all_taken(self) -> Mapping[str, dict[str, Any]]:
        path = self.path / _TAKEN
        try:
            about = path.stat()
        except OSError:
            return {}
        return _read_taken(path, about.st_mtime_ns, about.st_size)

    def _fields(self, address: str) -> Path:
        return self.place(address).path / "fields.safetensors"

    # -- making a run ----------------------------------------------------------------------

    @contextlib.contextmanager
    def claimed(self, address: str, content: Mapping[str, Any]) -> Iterator[RunDirectory]:
        """Hold a run's directory, or raise `BusyError`.

        Arguments:
            address: of the run.
            content: its settings, for whoever looks into the directory.
        """
        place = self.place(address)
        make_directory(place.path)
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

        Must be called while the run is claimed. Where the run was finished before, and only its
        weights were missing, all that was told of it stays as it is.

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
        if not self.done(address):
            if fields is not None:
                write_arrays(self._fields(address), *fields)
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


def _last_record(path: Path) -> dict[str, Any]:
    """What a run's metrics say of the run itself."""
    return check_records(read_json(path), path)[-1]


def _mapping(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path} is not what a study writes there; restore it or remove it")
    return content


def make_directory(path: Path) -> None:
    """Make a directory, or say in one sentence why it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"cannot make the directory {path}: {reason}") from None


def _line(entry: Mapping[str, Any]) -> str:
    return json.dumps(plain(entry), sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


@lru_cache(maxsize=8)
def _read_taken(path: Path, _changed: int, _size: int) -> dict[str, dict[str, Any]]:
    """The runs in such a file, by address; read again only when it has changed."""
    taken = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            entry = parsed(line)
            sound = isinstance(entry["address"], str) and (
                isinstance(entry.get("record"), dict) or isinstance(entry.get("failure"), dict)
            )
        except (ValueError, TypeError, KeyError):
            sound = False
        if not sound:
            raise UserError(
                f"{path}, line {number}: this is not a run; the file may be damaged, so restore it "
                "or remove the line"
            )
        taken[entry["address"]] = entry
    return taken


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
