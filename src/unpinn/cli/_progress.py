"""How training goes, on a terminal: one line a stage."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unpinn.training import Moment

NAMES = {"pinn": "PINN", "ppinn": "P-PINN", "dpinn": "D-PINN", "bpinn": "B-PINN"}


def display_name(method: str) -> str:
    """What tables call a method."""
    return NAMES.get(method, method)


class ProgressLines:
    """A watcher that draws a bar for every stage, and says nothing without a terminal."""

    def __init__(self, progress: Any):
        self._progress = progress
        self._part = ""
        self._tasks: dict[tuple[str, int, str], Any] = {}

    def announce(self, part: str) -> None:
        """Say which part begins."""
        self._part = display_name(part)
        self._tasks.clear()

    def __call__(self, moment: Moment) -> None:
        """Move the stage's bar."""
        if self._progress is None:
            return
        key = (self._part, moment.stage, moment.kind)
        task = self._tasks.get(key)
        if task is not None and moment.epoch < self._progress.tasks[task].completed:
            # The same stage from its start again: another round of the same part.
            task = None
        name = f"{self._part} {moment.kind}"
        if moment.stages > 1:
            name += f" {moment.stage}/{moment.stages}"
        if task is None:
            task = self._progress.add_task(name, total=moment.epochs, loss="", left="")
            self._tasks[key] = task
        left = "" if moment.seconds_left is None else f"{moment.seconds_left:.0f} s left"
        loss = f"loss {moment.terms.get('total', float('nan')):.3g}"
        self._progress.update(task, completed=moment.epoch, loss=loss, left=left)


@contextlib.contextmanager
def progress_lines(quiet: bool) -> Iterator[ProgressLines]:
    """Progress on standard error while it is a terminal, silence otherwise."""
    if quiet or not sys.stderr.isatty():
        yield ProgressLines(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"), TextColumn("{task.fields[left]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield ProgressLines(progress)
