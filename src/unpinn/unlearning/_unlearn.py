"""Algorithm 1, top to bottom: partition, prune, fine-tune."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.network import Model
from unpinn.problem import Observations
from unpinn.training import Fit, Partition, Pruning, Status, Watcher, reading_units, train
from unpinn.unlearning._evidence import compare_evidence
from unpinn.unlearning._native import NativePrunable, compacted, scores_of
from unpinn.unlearning._pruning import prune
from unpinn.unlearning._recipe import Recipe, default_recipe

# Mean change of the readings' weights below which the partition has settled.
_SETTLED = 0.003


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
    observations = _check(fit)
    if partition is not None:
        # Nothing will be learnt about the readings on the way, so all rounds are one.
        recipe = recipe.scaled_to(float(recipe.rounds)).once()
    current = fit
    for number in range(recipe.rounds):
        # Part I: which readings to trust.
        found = partition or recipe.rule(scores_of(current, recipe.residual_weight))
        found = _without_held_out(found, fit)
        if recipe.accept and partition is None and not found.suspect.any() and current is fit:
            return _kept(fit, fit, found, recipe, method, found.rule)
        if number and _settled(current.partition, found):
            break
        # Part II: remove the neurons that belong to the others (once).
        model, pruning = current.model, current.pruning
        if recipe.schedule is not None and pruning is None:
            seen = NativePrunable(model, observations.points)
            smaller, pruning = prune(seen, found, recipe.schedule, fit.seed)
            model = compacted(smaller.model)
        # Part III: fine-tune on what is trusted.
        where = None if directory is None else f"{directory}/round{number + 1}"
        current = _fine_tune(current, fit, model, found, pruning, recipe, where, watcher, method)
    return _accepted(fit, current, recipe, method)


def _settled(old: Partition | None, new: Partition) -> bool:
    """Whether another look changes so little that another round would not pay."""
    return old is not None and float(np.mean(np.abs(old.weight - new.weight))) < _SETTLED


def _fine_tune(
    current: Fit, fit: Fit, model: Model, partition: Partition, pruning: Pruning | None,
    recipe: Recipe, directory: Any, watcher: Watcher | None, method: str,
) -> Fit:  # fmt: skip
    """Train the smaller network on what is trusted; the record tells of all rounds."""
    stages = recipe.stages if current is fit or recipe.later is None else recipe.later
    protocol = replace(
        fit.protocol,
        stages=stages,
        weights={**fit.protocol.weights, **recipe.weights, **_physics(fit, partition, recipe)},
        name=recipe.name,
    )
    tuned = train(
        fit.problem, fit.observations, protocol, fit.seed, weights=partition.weight, start=model,
        scales=fit.details.get("scales"), directory=directory, watcher=watcher, method=method,
    )  # fmt: skip
    history, seconds, rounds = tuned.history, dict(tuned.seconds), 1
    if current is not fit:
        history = current.history.joined(history)
        seconds["total"] += current.seconds["total"]
        rounds += current.details["rounds"]
    return replace(
        tuned, partition=partition, pruning=pruning, before=fit, recipe=recipe.name,
        history=history, seconds=seconds,
        details={**fit.details, **tuned.details, "rounds": rounds},
    )  # fmt: skip


def _physics(fit: Fit, partition: Partition, recipe: Recipe) -> dict[str, float]:
    """The equations' weight that the estimated noise of good readings calls for."""
    if recipe.tolerance is None or partition.noise is None or fit.observations is None:
        return {}
    units = reading_units(fit.model, fit.observations)
    relative = partition.noise.low / float(np.sqrt(np.mean(units**2)))
    return {"equations": float(np.clip((relative / recipe.tolerance) ** 2, 1e-4, 100.0))}


def _accepted(fit: Fit, tuned: Fit, recipe: Recipe, method: str) -> Fit:
    """The tuned fit, or the baseline where the evidence says that unlearning did harm."""
    evidence = compare_evidence(fit, tuned)
    tuned = tuned.with_details(evidence={**vars(evidence), "accepts": evidence.accepts})
    if not recipe.accept or evidence.accepts:
        return tuned
    why = "unlearning made readings and residual agree less well"
    return _kept(fit, tuned, tuned.partition, recipe, method, why)


def _kept(
    fit: Fit, tried: Fit, partition: Partition | None, recipe: Recipe, method: str, why: str
) -> Fit:
    """The baseline, with the record of what was tried and why it was not taken."""
    return replace(
        fit, method=method, recipe=recipe.name, partition=partition, before=fit,
        status=Status("kept", f"{why}, so the baseline was kept"),
        details={**fit.details, "evidence": tried.details.get("evidence")},
    )  # fmt: skip


def _without_held_out(partition: Partition, fit: Fit) -> Partition:
    rows = fit.details.get("held_out")
    if not rows:
        return partition
    weight = partition.weight.copy()
    weight[np.asarray(rows)] = 0.0
    return replace(partition, weight=weight)


def _check(fit: Fit) -> Observations:
    """The fit's readings, if it can unlearn some."""
    if not isinstance(fit, Fit):
        raise UserError(f"unlearn needs a Fit from unpinn.train, not {type(fit).__name__}")
    if fit.observations is None:
        raise UserError("this fit has no readings, so there is nothing to unlearn")
    if fit.members is not None:
        raise UserError(f"a {fit.method} fit has many models; unlearn needs a single one")
    if fit.status.code == "failed":
        raise UserError(f"this fit failed ({fit.status.reason}); train it anew before unlearning")
    return fit.observations
