"""Algorithm 1 for a model that some other framework trained: partition, prune, fine-tune.

Nothing here knows the framework. What it has to provide is a `Subject`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unpinn._errors import UserError
from unpinn.adapters._records import Snapshot, Unlearned
from unpinn.training import Partition, Pruning, Status
from unpinn.unlearning import Evidence, Prunable, Recipe, fit_mixture, log_densities, prune

# Mean change of the readings' weights below which the partition has settled.
_SETTLED = 0.003
# A model that is no better than a constant may still be right about a share of the readings,
# where the others lie far off to one side; then its smallest misfits are much smaller.
_BEST_QUARTER = 0.5


@runtime_checkable
class Subject(Protocol):
    """A trained model with its readings, as the algorithm sees it."""

    points: np.ndarray
    values: np.ndarray

    def look(self) -> Snapshot:
        """What the model says now."""
        ...

    def prunable(self, retained: np.ndarray) -> Prunable:
        """The network with its hidden layers found."""
        ...

    def layer_names(self) -> tuple[str, ...]:
        """The names of the layers that can be pruned."""
        ...

    def adopt(self, smaller: Any) -> str:
        """Go on with the pruned network, without its dead neurons; says how far that went."""
        ...

    def tune(self, partition: Partition, recipe: Recipe, later: bool) -> Status:
        """Fine-tune with each reading counting as the partition says.

        Arguments:
            partition: with the readings' weights and the estimated noise.
            recipe: how.
            later: whether this is a further round, which starts from a tuned network.
        """
        ...

    def restore(self) -> None:
        """Go back to the model as it was given."""
        ...

    def module(self) -> Any:
        """The network as it is now."""
        ...


@dataclass
class _Progress:
    """What has happened so far."""

    now: Snapshot
    partition: Partition
    pruning: Pruning | None = None
    compaction: str = "nothing was pruned"
    tuned: Status = field(default_factory=lambda: Status("finished", "nothing was fine-tuned"))
    seconds: dict[str, float] = field(default_factory=lambda: {"prune": 0.0, "tune": 0.0})


def run_algorithm(
    subject: Subject,
    recipe: Recipe,
    partition: Partition | None = None,
    seed: int = 0,
    untrained: bool = False,
) -> Unlearned:
    """Make a model forget the readings that should not be trusted.

    Arguments:
        subject: the model.
        recipe: what to do.
        partition: a partition to use instead of finding one.
        seed: for criteria that draw.
        untrained: go on even with a model that explains the readings no better than a constant.
    """
    before = subject.look()
    if not untrained:
        check_trained(before.misfits, subject.values)
    if partition is not None and len(partition.retained) != len(subject.points):
        raise UserError(
            f"the partition is of {len(partition.retained)} readings, but there are "
            f"{len(subject.points)}"
        )
    if partition is not None:
        # Nothing will be learnt about the readings on the way, so all rounds are one.
        recipe = recipe.scaled_to(float(recipe.rounds)).once()
    found = partition or recipe.rule(before.scores(recipe.residual_weight))
    done = _Progress(before, found)
    try:
        if partition is None and recipe.accept and not found.suspect.any():
            subject.restore()
            return _result(subject, recipe, before, done, before, _kept(found.rule), None)
        _rounds(subject, recipe, done, seed)
    except BaseException:
        subject.restore()
        raise
    after, status, evidence = _judged(subject, recipe, before, done)
    return _result(subject, recipe, before, done, after, status, evidence)


def _result(
    subject: Subject, recipe: Recipe, before: Snapshot, done: _Progress, after: Snapshot,
    status: Status, evidence: Evidence | None,
) -> Unlearned:  # fmt: skip
    return Unlearned(
        subject.module(), subject.points, subject.values, done.partition, done.pruning, before,
        after, evidence, subject.layer_names() if done.pruning else (), done.compaction, status,
        recipe.name, done.seconds,
    )  # fmt: skip


def check_trained(misfits: np.ndarray, values: np.ndarray) -> None:
    """Refuse a model that tells the readings no better than a constant would."""
    constant = values - np.nanmedian(values, axis=0)
    centred = values - np.nanmean(values, axis=0)
    if np.nansum(misfits**2) < np.nansum(centred**2):
        return
    mine, theirs = (np.nanquantile(np.abs(part), 0.25) for part in (misfits, constant))
    if not mine < _BEST_QUARTER * theirs:
        raise UserError(
            "the model explains the readings no better than a constant does, so it cannot tell "
            "good from bad ones; train it first, or pass untrained=True if it is as it should be"
        )


def compare_snapshots(before: Snapshot, after: Snapshot) -> Evidence:
    """How likely the readings are under each one's own noise, and how well the equations hold."""
    first, second = (
        log_densities(s.misfits, fit_mixture(s.misfits).noise) for s in (before, after)
    )
    difference = second - first
    count = len(difference)
    error = float(difference.std(ddof=1) / np.sqrt(count)) if count > 1 else float("inf")
    return Evidence(
        float(difference.mean()), error, before.fresh_residual, after.fresh_residual, False, count
    )


def _kept(why: str) -> Status:
    return Status("kept", f"{why}, so the model was kept")


def _rounds(subject: Subject, recipe: Recipe, done: _Progress, seed: int) -> None:
    for number in range(recipe.rounds):
        start = perf_counter()
        if number > 0:
            found = recipe.rule(done.now.scores(recipe.residual_weight))
            if np.mean(np.abs(found.weight - done.partition.weight)) < _SETTLED:
                break
            done.partition = found
        if recipe.schedule is not None and done.pruning is None:
            whole = subject.prunable(done.partition.retained)
            smaller, done.pruning = prune(whole, done.partition, recipe.schedule, seed)
            done.compaction = subject.adopt(smaller)
        pruned = perf_counter()
        done.tuned = subject.tune(done.partition, recipe, later=number > 0)
        done.now = subject.look()
        done.seconds["prune"] += pruned - start
        done.seconds["tune"] += perf_counter() - pruned
        if not _finite(done.now, subject.values):
            break


def _finite(now: Snapshot, values: np.ndarray) -> bool:
    """Whether a model still gives numbers wherever something was read."""
    seen = np.isfinite(values)
    return bool(np.isfinite(now.residuals).all() and np.isfinite(now.misfits[seen]).all())


def _judged(subject: Subject, recipe: Recipe, before: Snapshot, done: _Progress):
    """The tuned model, or the one that was given where the evidence says that harm was done."""
    if not _finite(done.now, subject.values):
        subject.restore()
        lost, count = float("-inf"), len(subject.values)
        nothing = Evidence(lost, 0.0, before.fresh_residual, float("inf"), False, count)
        return before, _kept("fine-tuning diverged"), nothing
    evidence = compare_snapshots(before, done.now)
    if recipe.accept and not evidence.accepts:
        subject.restore()
        return before, _kept("unlearning made readings and residual agree less well"), evidence
    return done.now, done.tuned, evidence
