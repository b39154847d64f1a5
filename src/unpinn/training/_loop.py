"""The one training loop: it owns progress, checkpoints, divergence checks and stopping reasons."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn.network import Model
from unpinn.training._balance import balanced_weights
from unpinn.training._checkpoint import Checkpoint, Snapshot, from_leaves, to_leaves
from unpinn.training._history import History
from unpinn.training._objective import Objective
from unpinn.training._progress import Moment, Watcher
from unpinn.training._scales import (
    measured_scales,
    reference_scales,
    used_scales,
    with_scales,
)
from unpinn.training._stages import LENGTH, Stage, record_names

# A loss that has grown by so much over its first value is not coming back.
_HOPELESS = 1e6

Build = Callable[[Stage], Objective]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the loop gives back.

    Arguments:
        model: the last good one.
        history: every epoch of every stage.
        notes: for each stage, its kind, why it stopped ("reason"), and whether it diverged.
        seconds: compile, first, steady (per epoch) of each stage, and the total.
        optimiser: the last stage's state.
        scales: what equations were divided by in the end.
        weights: of the terms in the end, by name.
    """

    model: Model
    history: History
    notes: list[dict[str, Any]]
    seconds: dict[str, float]
    optimiser: list[np.ndarray]
    scales: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)


def run(
    stages: tuple[Stage, ...],
    build: Build,
    model: Model,
    *,
    names: tuple[str, ...],
    seed: int,
    watcher: Watcher,
    checkpoint: Checkpoint | None = None,
    optimiser: list[np.ndarray] | None = None,
) -> Outcome:
    """Run stages in order, each from where the last one stopped.

    Arguments:
        stages: what to run.
        build: gives a stage's objective, in NumPy float64.
        model: where to start.
        names: all columns that the history may have.
        seed: of the randomness in mini-batches and dropout.
        watcher: is told between chunks.
        checkpoint: where the state is kept; a run found there is continued.
        optimiser: a state to start the first stage from instead of a fresh one.
    """
    snapshot = checkpoint.read() if checkpoint else None
    history = snapshot.history if snapshot else History.empty(names)
    notes = list(snapshot.notes) if snapshot else []
    seconds = dict(snapshot.seconds) if snapshot else {"total": 0.0}
    template, result = model, None
    first = snapshot.stage if snapshot else 0
    for number in range(first, len(stages)):
        runner = _StageRun(stages, number, build, template, names, seed, watcher, checkpoint)
        resumed = snapshot if snapshot and number == first else None
        result = runner.go(model, history, notes, seconds, resumed, optimiser)
        model, history, optimiser = result.model, result.history, None
    assert result is not None
    return result


@dataclass(frozen=True, eq=False)
class _StageRun:
    """One stage under way: its place in the run and what it shares with the others."""

    stages: tuple[Stage, ...]
    number: int
    build: Build
    template: Model
    names: tuple[str, ...]
    seed: int
    watcher: Watcher
    checkpoint: Checkpoint | None

    @property
    def stage(self) -> Stage:
        return self.stages[self.number]

    def go(self, model, history, notes, seconds, resumed: Snapshot | None, optimiser) -> Outcome:
        """Run the stage to its end."""
        stage = self.stage
        with precision.scope("float64"):
            template = precision.cast(self.template, stage.precision)
            model = precision.cast(model, stage.precision)
        with precision.scope(stage.precision):
            objective, scales = self._objective(model, resumed)
            key = jax.random.fold_in(jax.random.key(self.seed), self.number)
            state = stage.start(objective, model, key)
            if resumed is not None:
                state = from_leaves(state, resumed.leaves)
            elif optimiser is not None:
                state = _restarted(state, optimiser)
            if resumed is None:
                history = history.starting(stage.kind)
            state, history, note = self._chunks(
                objective, template, state, key, history, notes, seconds, scales
            )
            model = stage.model(template, state)
            notes.append(note)
        weights = dict(zip(objective.names, np.asarray(objective.weights).tolist(), strict=True))
        return Outcome(
            model, history, notes, seconds, to_leaves(state), used_scales(objective), weights
        )

    def _objective(self, model: Model, resumed: Snapshot | None):
        stage = self.stage
        objective = self.build(stage)
        kind = np.dtype(stage.precision)
        objective = jax.tree_util.tree_map(
            lambda a: jnp.asarray(a, kind) if hasattr(a, "dtype") else a, objective
        )
        scales: dict[str, float] = {}
        if resumed is not None:
            scales = resumed.scales
            objective = objective.weighted(jnp.asarray(resumed.weights, kind))
            return (with_scales(objective, scales) if scales else objective), scales
        if stage.rescale is not None:
            size = {"measured": measured_scales, "reference": reference_scales}[stage.rescale]
            scales = size(objective, model)
            objective = with_scales(objective, scales)
        if stage.balance:
            objective = objective.weighted(jnp.asarray(balanced_weights(objective, model), kind))
        return objective, scales

    def _chunks(self, objective, template, state, key, history, notes, seconds, scales):
        stage = self.stage
        columns = record_names(objective, template)
        clock = _Clock(seconds, self.number)
        chunk = int(np.clip(stage.length // 100, 1, LENGTH))
        # Running no epoch compiles the program, so that its time is known apart.
        clock.compile(lambda: stage.advance(objective, template, state, 0, key))
        start = _first_total(history)
        note = {"kind": stage.kind, "reason": "all epochs were run", "diverged": False}

        def keep(state, history):
            if self.checkpoint is not None:
                weights = np.asarray(objective.weights)
                leaves = to_leaves(state)
                self.checkpoint.write(
                    Snapshot(self.number, leaves, weights, scales, history, notes, seconds)
                )

        before = good = (state, history)
        try:
            while (done := stage.done(state)) < stage.length:
                count = min(chunk - done % chunk, stage.length - done)
                state, rows, reason = clock.time(
                    count, lambda n=count, s=state: stage.advance(objective, template, s, n, key)
                )
                rows = np.asarray(rows, np.float64)
                history = history.extended(columns, rows)
                start = _first_total(history) if start is None else start
                if _lost(rows, state, start):
                    # Adam tells the loss before each step, so a chunk that begins badly says that
                    # the state it began from was none to keep; L-BFGS has seen what it accepts.
                    unseen = not hasattr(state, "value") and _hopeless(rows[:1], start)
                    state = (before if unseen else good)[0]
                    note.update(_diverged(stage.done(state)))
                    break
                before, good = good, (state, history)
                self._tell(stage, state, columns, rows, clock)
                if reason is not None:
                    note["reason"] = reason
                    break
                if self.checkpoint is not None and self.checkpoint.due():
                    keep(*good)
            else:
                # For the same reason nobody has seen what Adam's last step led to.
                seen = hasattr(state, "value")
                rows = () if seen else stage.advance(objective, template, state, 1, key)[1]
                if _hopeless(np.asarray(rows, np.float64), start):
                    state = before[0]
                    note.update(_diverged(stage.done(state)))
        except KeyboardInterrupt:
            keep(*good)
            raise
        clock.close()
        return state, history, note

    def _tell(self, stage, state, columns, rows, clock) -> None:
        done = stage.done(state)
        last = dict(zip(columns, rows[-1].tolist(), strict=True)) if len(rows) else {}
        self.watcher(
            Moment(
                self.number + 1, len(self.stages), stage.kind, done, stage.length, last,
                stage.rate_at(done), clock.left(stage.length - done),
            )
        )  # fmt: skip


class _Clock:
    """Compile, first step and steady state apart."""

    def __init__(self, seconds: dict[str, float], number: int):
        self._seconds = seconds
        self._name = f"stage{number + 1}"
        self._steady: list[tuple[int, float]] = []

    def compile(self, work) -> None:
        begin = time.perf_counter()
        jax.block_until_ready(work()[0])
        self._add("compile", time.perf_counter() - begin)

    def time(self, count: int, work):
        begin = time.perf_counter()
        result = work()
        jax.block_until_ready(result[0])
        passed = time.perf_counter() - begin
        if f"{self._name}.first" not in self._seconds:
            self._seconds[f"{self._name}.first"] = passed / max(count, 1)
        else:
            self._steady.append((count, passed))
        self._add("run", passed)
        return result

    def left(self, epochs: int) -> float | None:
        """Seconds for so many more epochs, from the last few chunks."""
        recent = self._steady[-5:]
        done = sum(count for count, _ in recent)
        return epochs * sum(passed for _, passed in recent) / done if done else None

    def close(self) -> None:
        counts = sum(count for count, _ in self._steady)
        if counts:
            self._seconds[f"{self._name}.steady"] = sum(t for _, t in self._steady) / counts

    def _add(self, what: str, passed: float) -> None:
        key = f"{self._name}.{what}"
        self._seconds[key] = self._seconds.get(key, 0.0) + passed
        self._seconds["total"] = self._seconds.get("total", 0.0) + passed


def _diverged(epoch: int) -> dict[str, Any]:
    return {"diverged": True, "reason": f"diverged after epoch {epoch}; kept that state"}


def _first_total(history: History) -> float | None:
    """The stage's first loss, against which divergence is judged."""
    begin = history.stages[-1][1] if history.stages else 0
    return float(history.rows[begin, 0]) if len(history.rows) > begin else None


def _lost(rows: np.ndarray, state: Any, start: float | None) -> bool:
    """Whether anything is not a number, or the loss has grown beyond hope."""
    values = [state.x, *([state.value] if hasattr(state, "value") else [])]
    if not all(bool(jnp.isfinite(array).all()) for array in values):
        return True
    return _hopeless(rows, start)


def _hopeless(rows: np.ndarray, start: float | None) -> bool:
    """Whether rows of history hold a loss that is no number, or end with one beyond hope."""
    if not len(rows) or start is None:
        return False
    if not np.isfinite(rows[:, 0]).all():
        return True
    return bool(abs(rows[-1, 0]) > _HOPELESS * max(abs(start), 1))


def _restarted(fresh: Any, leaves: list[np.ndarray]) -> Any:
    """A fresh state with the memory of an earlier run, which need not have had this precision."""
    kinds = [leaf.dtype for leaf in jax.tree_util.tree_leaves(fresh)]
    same = len(kinds) == len(leaves)
    cast = [leaf.astype(k) for leaf, k in zip(leaves, kinds, strict=True)] if same else leaves
    old = from_leaves(fresh, cast)
    # The vector is the model's own, and epochs are counted anew.
    return old._replace(x=fresh.x, epoch=fresh.epoch)
