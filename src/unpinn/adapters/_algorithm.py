"""Algorithm 1 for a model that some other framework trained: partition, prune, fine-tune.

Nothing here knows the framework. What it has to provide is a `Subject`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from unpinn._errors import UserError
from unpinn.adapters._attempt import Attempt, Trial
from unpinn.adapters._comparison import check_trained, compare_snapshots, is_finite
from unpinn.adapters._records import Snapshot, Unlearned
from unpinn.adapters._subject import Subject
from unpinn.training import Partition, Status
from unpinn.unlearning import Evidence, Recipe


@dataclass(eq=False)
class _Search:
    """What has been tried so far.

    Arguments:
        best: what is to be matched: the given model until something is accepted.
        last: the latest attempt, accepted or not.
        tried: every attempt, for the record.
        spent: seconds.
    """

    best: Attempt
    last: Attempt
    tried: list[dict[str, Any]] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=lambda: {"prune": 0.0, "tune": 0.0})


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
        longer = recipe.scaled_to(float(recipe.rounds))
        recipe = replace(longer, later=recipe.later or recipe.stages).once()
    given = Attempt(before, partition or recipe.rule(before.scores(recipe.residual_weight)))
    if partition is None and recipe.accept and not given.partition.suspect.any():
        subject.restore()
        return _result(subject, recipe, before, _Search(_kept(given, given.partition.rule), given))
    try:
        search = _searched(subject, recipe, given, partition is not None, seed)
        if search.best.rounds:
            subject.bring_back(search.best.kept)
        else:
            subject.restore()
    except BaseException:
        subject.restore()
        raise
    judged = search.last if search.best.rounds == 0 else search.best
    evidence = compare_snapshots(before, judged.now)
    return _result(subject, recipe, before, _named(search, recipe), evidence)


def _searched(subject: Subject, recipe: Recipe, given: Attempt, held: bool, seed: int) -> _Search:
    """Try in turn what the recipe says, until neurons have been removed without harm."""
    search, start = _Search(given, given), subject.keep()
    for attempt in recipe.attempts():
        begun = perf_counter()
        subject.bring_back(start)
        trial = Trial(subject, attempt, given.partition, held, seed, search.spent)
        search.last = found = trial.run(given.now)
        accepted = is_finite(found.now, subject.values)
        if recipe.accept:
            evidence = compare_snapshots(search.best.now, found.now)
            accepted = evidence.accepts if search.best is given else evidence.spares
        search.tried.append(_told(found, accepted, perf_counter() - begun))
        if accepted:
            search.best = found
            if attempt.schedule is not None:
                break
    return search


def _told(found: Attempt, accepted: bool, seconds: float) -> dict[str, Any]:
    """An attempt, for the record."""
    return {
        "accepted": accepted,
        "rounds": found.rounds,
        "stiffened": found.stiffened,
        "seconds": seconds,
        "neurons": None if found.pruning is None else list(found.pruning.after),
        "unknowns": dict(found.now.unknowns),
    }


def _named(search: _Search, recipe: Recipe) -> _Search:
    """With a sentence for why the best is what it is."""
    best = search.best
    if best.rounds == 0:
        diverged = not is_finite(search.last.now, best.now.misfits)
        why = "unlearning made readings and residual agree less well"
        return replace(search, best=_kept(best, "fine-tuning diverged" if diverged else why))
    if best.pruning is None and recipe.schedule is not None:
        why = f"{best.status.reason}; with fewer neurons readings and residual agreed less well"
        return replace(search, best=replace(best, status=Status(best.status.code, why)))
    return search


def _kept(given: Attempt, why: str) -> Attempt:
    return replace(given, status=Status("kept", f"{why}, so the model was kept"))


def _result(
    subject: Subject, recipe: Recipe, before: Snapshot, search: _Search,
    evidence: Evidence | None = None,
) -> Unlearned:  # fmt: skip
    best = search.best
    return Unlearned(
        subject.module(), subject.points, subject.values, best.partition, best.pruning, before,
        best.now, evidence, subject.layer_names() if best.pruning else (), best.compaction,
        best.status, recipe.name, search.spent, search.tried,
    )  # fmt: skip
