"""What the training loop tells whoever watches."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Protocol as Interface
from typing import runtime_checkable


@dataclass(frozen=True)
class Moment:
    """Where a run is.

    Arguments:
        stage: number of the stage, from 1.
        stages: how many there are.
        kind: "adam", "lbfgs".
        epoch: epochs done in this stage.
        epochs: of so many.
        terms: the last value of the total, each term, each unknown.
        rate: the learning rate.
        seconds_left: in this stage, as far as one can tell.
    """

    stage: int
    stages: int
    kind: str
    epoch: int
    epochs: int
    terms: dict[str, float]
    rate: float
    seconds_left: float | None


@runtime_checkable
class Watcher(Interface):
    """Anything that wants to be told."""

    def __call__(self, moment: Moment) -> None:
        """Called between compiled chunks."""
        ...


class Quiet:
    """Says nothing."""

    def __call__(self, moment: Moment) -> None:
        """Ignore it."""


class TerminalLine:
    """One line that is rewritten, on a terminal only."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr

    def __call__(self, moment: Moment) -> None:
        """Rewrite the line."""
        shown = "  ".join(f"{k} {v:.3g}" for k, v in list(moment.terms.items())[:6] if v == v)
        left = "" if moment.seconds_left is None else f"  {moment.seconds_left:.0f} s left"
        text = (
            f"{moment.kind} {moment.stage}/{moment.stages}  {moment.epoch}/{moment.epochs}  "
            f"{shown}  rate {moment.rate:.2g}{left}"
        )
        end = "\n" if moment.epoch >= moment.epochs else ""
        self._stream.write(f"\r\x1b[2K{text[:150]}{end}")
        self._stream.flush()


def default_watcher() -> Watcher:
    """A line on a terminal, silence elsewhere."""
    return TerminalLine() if sys.stderr.isatty() else Quiet()
