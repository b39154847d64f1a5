"""A run's directory: what is in it, and when it may be entered.

configuration.json   written first: what the run is
checkpoints/         while it is under way: every part's state, and finished parts
fit/                 the result, with the baseline inside (`unpinn.load` reads it)
metrics.json         one record a method; written last, so a directory with it is finished
history.parquet      every term of the loss at every epoch
index.html           the page
suspects.csv         every reading, the worst first
suspects-by-sensor.csv
                     every sensor, the worst first, where readings name them
unknowns.json        the unknown numbers with their intervals
pictures/            PNG files
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn._files import read_json, sweep, write_json
from unpinn.runs._lock import locked

FORMAT = 1
_FILES = (
    "metrics.json", "history.parquet", "suspects.csv", "suspects-by-sensor.csv", "unknowns.json",
    "index.html",
)  # fmt: skip
_FOLDERS = ("checkpoints", "fit", "pictures")


@dataclass(frozen=True)
class RunDirectory:
    """The places in a run's directory."""

    path: Path

    @property
    def configuration(self) -> Path:
        """What the run is."""
        return self.path / "configuration.json"

    @property
    def metrics(self) -> Path:
        """One record a method."""
        return self.path / "metrics.json"

    @property
    def fit(self) -> Path:
        """The result."""
        return self.path / "fit"

    @property
    def pictures(self) -> Path:
        """PNG files."""
        return self.path / "pictures"

    @property
    def checkpoints(self) -> Path:
        """The state of what is under way."""
        return self.path / "checkpoints"

    @property
    def finished(self) -> bool:
        """Whether everything is there."""
        return self.metrics.exists()

    def is_run(self) -> bool:
        """Whether this package has written it."""
        if not self.configuration.exists():
            return False
        content = read_json(self.configuration)
        return isinstance(content, dict) and content.get("format") == FORMAT

    @contextlib.contextmanager
    def entered(self, description: Mapping[str, Any], force: bool = False) -> Iterator[None]:
        """Hold the directory for a run, new or interrupted, or refuse in one sentence.

        Arguments:
            description: what the run is; an interrupted one of the same description goes on.
            force: discard what an earlier run has left there. Files that no run has written are
                never touched.
        """
        self._make()
        with locked(self.path):
            # A folder that is not (yet) a run's may hold files that are somebody else's.
            sweep(self.path, "*" if self.is_run() else self.configuration.name)
            if force and self.is_run():
                self._discard()
            self._check(description, force)
            write_json(self.configuration, {"format": FORMAT, **description})
            yield

    def _make(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self.path} is a file; choose another directory with --out")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"cannot make the directory {self.path}: {reason}") from None

    def _check(self, description: Mapping[str, Any], force: bool) -> None:
        if not self.is_run():
            others = [entry.name for entry in self.path.iterdir() if entry.name != "lock"]
            if others and not force:
                raise UserError(
                    f"{self.path} holds other files ({sorted(others)[0]}, for one); choose another "
                    "directory with --out, or write beside them with --force"
                )
            taken = sorted({*others} & {*_FILES, *_FOLDERS})
            if taken:
                raise UserError(
                    f"{self.path / taken[0]} was written by no run, and a run would write over it; "
                    "choose another directory with --out"
                )
            return
        there = read_json(self.configuration)
        for name, value in description.items():
            if there.get(name) != value:
                raise UserError(
                    f"{self.path} holds another run ({_words(name, there.get(name), value)}); "
                    "choose another directory with --out, or discard that run with --force"
                )
        if self.finished:
            raise UserError(
                f"{self.path} holds this run, finished; look at its pictures and metrics.json, or "
                "run it anew with --force"
            )

    def _discard(self) -> None:
        for name in _FILES:
            (self.path / name).unlink(missing_ok=True)
        for name in _FOLDERS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        self.configuration.unlink(missing_ok=True)


def _words(name: str, there: Any, wanted: Any) -> str:
    if name.endswith("_fingerprint"):
        return f"of another {name.removesuffix('_fingerprint')}"
    return f"its {name} is {there!r}, not {wanted!r}"
