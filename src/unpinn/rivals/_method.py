"""One contract for every way to survive noise: a task in, a fit out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.problem import Observations, Problem
from unpinn.training import Fit, Protocol, Watcher, train
from unpinn.unlearning import Recipe


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given: the same for all of them.

    Arguments:
        problem: equations and conditions.
        observations: the readings.
        protocol: how the plain network is trained; every method gets the same budget.
        seed: of everything random.
        baseline: the plain network, where it was trained before; methods that start from it train
            it themselves otherwise.
        recipe: how to unlearn, for the methods that do.
        true_sigma: the readings' true noise levels, for the oracle alone.
        options: the method's own settings.
        directory: where checkpoints are kept.
        watcher: is told how it goes.
    """

    problem: Problem
    observations: Observations
    protocol: Protocol
    seed: int = 0
    baseline: Fit | None = None
    recipe: Recipe | None = None
    true_sigma: np.ndarray | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    directory: Path | None = None
    watcher: Watcher | None = None

    def place(self, name: str) -> Path | None:
        """A subdirectory for one part of the work."""
        return None if self.directory is None else Path(self.directory) / name

    def trained_baseline(self) -> Fit:
        """The plain network: the one that was passed, or trained now."""
        if self.baseline is not None:
            return self.baseline
        return train(
            self.problem, self.observations, self.protocol, self.seed,
            directory=self.place("baseline"), watcher=self.watcher,
        )  # fmt: skip


@dataclass(frozen=True)
class Method:
    """A way to survive noise.

    Arguments:
        name: on the command line and in tables.
        summary: one line of what it does.
        run: the work.
        options: its settings and their defaults; others are refused.
        needs_baseline: whether it starts from the plain network.
        needs_truth: whether it is told the true noise levels (the oracle).
    """

    name: str
    summary: str
    run: Callable[[Task], Fit]
    options: Mapping[str, Any] = field(default_factory=dict)
    needs_baseline: bool = False
    needs_truth: bool = False


METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method to the registry."""
    if method.name in METHODS:
        raise UserError(f"there is a method {method.name!r} already")
    METHODS[method.name] = method
    return method


def method_named(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        close = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UserError(f"method {name!r} is not known ({', '.join(sorted(METHODS))}){hint}")
    return METHODS[name]


def run_method(name: str, task: Task) -> Fit:
    """Run a method on a task, refusing settings it does not have before anything is trained."""
    method = method_named(name)
    for option in task.options:
        if option not in method.options:
            close = difflib.get_close_matches(option, method.options, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            known = ", ".join(method.options) or "none"
            raise UserError(f"method {name!r} has no option {option!r} (it has {known}){hint}")
    if method.needs_truth and task.true_sigma is None:
        raise UserError(
            f"method {name!r} must be told the true noise of every reading; it is for benchmarks"
        )
    fit = method.run(replace(task, options={**method.options, **task.options}))
    return replace(fit, method=name)
