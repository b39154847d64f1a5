"""Algorithm 1, top to bottom: partition, prune, fine-tune."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.training import Fit, Partition, Status, Watcher
from unpinn.unlearning._evidence import compare_evidence
from unpinn.unlearning._native import NativePrunable, compacted, scores_of
from unpinn.unlearning._partition import part, rows, settled
from unpinn.unlearning._pruning import prune
from unpinn.unlearning._recipe import Recipe, default_recipe
from unpinn.unlearning._tuning import Tuning


def unlearn(
    fit: Fit,
    recipe: Recipe | None = None,
    *,
    partition: Partition | None = None,
    directory: Any = None,
    watcher: Watcher | None = None,
    method: str = "ppinn",
) -> Fit:
    """Make a trained network forget the readings that should not be trusted.

    Arguments:
        fit: a trained fit with readings: the baseline.
        recipe: what to do; the default one needs no number set by hand.
        partition: a partition to use instead of finding one.
        directory: where the run keeps its checkpoints; a killed run found there is continued.
        watcher: is told how the fine-tuning goes.
        method: the name that the record carries.
    """
    recipe = recipe or default_recipe()
    _check(fit, partition)
    seen, spent = _seen(fit), {"partition": 0.0, "pruning": 0.0}
    if partition is not None:
        # Nothing will be learnt about the readings on the way, so all rounds are one.
        longer = recipe.scaled_to(float(recipe.rounds))
        recipe = replace(longer, later=recipe.later or recipe.stages).once()
        partition = replace(partition, weight=np.where(seen, partition.weight, 0.0))
    with _timed(spent, "partition"):
        first = partition or find_partition(fit, recipe)
    if recipe.accept and partition is None and not first.suspect[seen].any():
        return _kept(fit, first, recipe, method, first.rule, [{"seconds": spent["partition"]}])
    best, last, tried = fit, fit, []
    for number, attempt in enumerate(recipe.attempts()):
        place = directory if directory is None or not number else f"{directory}/attempt{number + 1}"
        tune = Tuning(fit, attempt, place, watcher, method)
        last = _attempted(tune, first, partition, spent)
        accepted = True
        if recipe.accept:
            evidence = compare_evidence(best, last)
            accepted = evidence.accepts if best is fit else evidence.spares
        tried.append(_told(last, accepted))
        best = last if accepted else best
        if accepted and attempt.schedule is not None:
            break
    if best is fit:
        why = "unlearning made readings and residual agree less well"
        kept = _kept(fit, first, recipe, method, why, tried)
        return kept.with_details(evidence=_judged(fit, last))
    total = sum(attempt["seconds"] for attempt in tried) + sum(spent.values())
    best = replace(best, seconds={**best.seconds, **spent, "total": total})
    if best.pruning is None and recipe.schedule is not None:
        why = f"{best.status.reason}; removing neurons made the readings agree less well"
        best = replace(best, status=Status(best.status.code, why))
    return best.with_details(evidence=_judged(fit, best), tried=tried)


def _told(tuned: Fit, accepted: bool) -> dict[str, Any]:
    """An attempt, for the record."""
    return {
        "accepted": accepted,
        "rounds": tuned.details["rounds"],
        "seconds": tuned.seconds["total"],
        "neurons": list(tuned.model.network.alive),
        "unknowns": dict(tuned.unknowns),
    }


def _judged(before: Fit, after: Fit) -> dict[str, Any]:
    evidence = compare_evidence(before, after)
    return {**vars(evidence), "accepts": evidence.accepts}


def _attempted(
    tune: Tuning, first: Partition, partition: Partition | None, spent: dict[str, float]
) -> Fit:
    """Algorithm 1 once: in rounds, then refined.

    Arguments:
        tune: the baseline, its recipe, and how it is fine-tuned.
        first: the baseline's partition.
        partition: the one that is to be used throughout, if any.
        spent: seconds so far, to which this attempt's are added.
    """
    fit, recipe, seen = tune.fit, tune.recipe, _seen(tune.fit)
    current = fit
    for number in range(recipe.rounds):
        # Part I: which readings to trust.
        with _timed(spent, "partition"):
            found = partition or (find_partition(current, recipe) if number else first)
        if number and settled(current.partition, found):
            break
        # Part II: remove the neurons that belong to the others (once).
        model, pruning = current.model, current.pruning
        if recipe.schedule is not None and pruning is None:
            with _timed(spent, "pruning"):
                network = NativePrunable(model, fit.observations.points[seen])  # type: ignore[union-attr]
                smaller, pruning = prune(network, rows(found, seen), recipe.schedule, fit.seed)
                model = compacted(smaller.model)
        # Part III: fine-tune on what is trusted.
        current = tune(current, model, found, pruning, f"round{number + 1}")
    return tune.refined(current, lambda tuned: partition or find_partition(tuned, recipe))


def find_partition(fit: Fit, recipe: Recipe) -> Partition:
    """Part I of Algorithm 1: which of a fit's readings to trust, by a recipe's rule.

    Readings that were held out of the training have no say in it and weigh nothing.

    Arguments:
        fit: a trained fit with readings.
        recipe: whose rule and residual weight to use.
    """
    return part(scores_of(fit, recipe.residual_weight), recipe.rule, _seen(fit))


def _kept(
    fit: Fit, partition: Partition | None, recipe: Recipe, method: str, why: str,
    tried: list[dict[str, Any]],
) -> Fit:  # fmt: skip
    """The baseline with its own partition, and the record of what was tried and why not taken."""
    status = Status("kept", f"{why}, so the baseline was kept")
    if not fit.status.good:
        # To be kept makes no good result of a bad one.
        status = Status(fit.status.code, f"{fit.status.reason}; {status.reason}")
    return replace(
        fit, method=method, recipe=recipe.name, partition=partition, before=fit, status=status,
        seconds={"total": sum(attempt["seconds"] for attempt in tried)},
        details={**fit.details, "evidence": None, "tried": tried},
    )  # fmt: skip


def _seen(fit: Fit) -> np.ndarray:
    """Which readings training has seen: all but those held out."""
    seen = np.ones(0 if fit.observations is None else len(fit.observations), bool)
    seen[np.asarray(fit.details.get("held_out") or [], int)] = False
    return seen


@contextmanager
def _timed(spent: dict[str, float], name: str) -> Iterator[None]:
    begun = perf_counter()
    yield
    spent[name] += perf_counter() - begun


def _check(fit: Fit, partition: Partition | None) -> None:
    """Refuse a fit that cannot unlearn anything."""
    if not isinstance(fit, Fit):
        raise UserError(f"unlearn needs a Fit from unpinn.train, not {type(fit).__name__}")
    if fit.observations is None:
        raise UserError("this fit has no readings, so there is nothing to unlearn")
    if fit.members is not None:
        raise UserError(f"this fit, by {fit.method}, has many models; unlearn needs a single one")
    if fit.status.code == "failed":
        raise UserError(f"this fit failed ({fit.status.reason}); train it anew before unlearning")
    if partition is not None and len(partition.retained) != len(fit.observations):
        raise UserError(
            f"the partition is of {len(partition.retained)} readings, but the fit has "
            f"{len(fit.observations)}"
        )
    if partition is not None and not (partition.retained & _seen(fit)).any():
        raise UserError("the partition retains no reading, so nothing would be left to train on")
