"""Changes of a recipe, by name, as a study file states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from unpinn._errors import UserError
from unpinn.training import Adam, Lbfgs, Stage
from unpinn.unlearning import ByMixture, ByShare, ByThreshold, Recipe, Schedule, criterion

_SCHEDULE = tuple(f.name for f in fields(Schedule) if f.name != "total")
_RECIPE = ("residual_weight", "rounds", "stiffening", "firm", "accept", "tolerance")
_LENGTHS = {"adam": Adam, "lbfgs": Lbfgs}
_MIXTURE = ("cut", "soft")
UNLEARNING = (
    "share", "threshold", *_MIXTURE, *_SCHEDULE, "single", "prune", "physics", *_RECIPE, *_LENGTHS,
)  # fmt: skip
"""What of an unlearning a study can set."""


def changed_recipe(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """A recipe with some settings changed.

    `share` or `threshold` replace the rule of the partition, `cut` and `soft` change that of a
    mixture; `prune = false` removes no neuron, `single = true` removes all in one step, `layers`
    is how many layers are pruned, counted from the input, or a list of them; `physics` is the
    equations' weight in fine-tuning, whatever the noise; `adam` and `lbfgs` are the lengths of such
    stages of it, zero leaving them out. All others are those of the schedule and of the recipe.

    >>> from unpinn.unlearning import paper_recipe
    >>> changed = changed_recipe(paper_recipe(True), {"share": 0.6, "layers": 2})
    >>> changed.rule, changed.schedule.layers
    (ByShare(share=0.6), (0, 1))
    """
    for name in changes:
        if name not in UNLEARNING:
            raise UserError(f"an unlearning has no {name!r} (it has {', '.join(UNLEARNING)})")
    recipe = replace(recipe, rule=_rule(recipe, changes))
    if not changes.get("prune", True):
        recipe = recipe.without_pruning()
    schedule = {name: value for name, value in changes.items() if name in _SCHEDULE}
    if isinstance(schedule.get("criterion"), str):
        criterion(schedule["criterion"])
    if "layers" in schedule:
        schedule["layers"] = _layers(schedule["layers"])
    if recipe.schedule is not None:
        recipe = recipe.changed(**schedule)
        if changes.get("single"):
            recipe = replace(recipe, schedule=recipe.schedule.at_once())  # type: ignore[union-attr]
    elif schedule:
        raise UserError(f"nothing is pruned, so {next(iter(schedule))!r} cannot be set")
    if "physics" in changes:
        weights = {**recipe.weights, "equations": float(changes["physics"])}
        recipe = replace(recipe, weights=weights, tolerance=None)
    lengths = {kind: changes[name] for name, kind in _LENGTHS.items() if name in changes}
    if lengths:
        stages, later = (_with_lengths(s, lengths) for s in (recipe.stages, recipe.later or ()))
        if not stages:
            raise UserError("nothing would be left of the fine-tuning; leave one of its stages in")
        recipe = replace(recipe, stages=stages, later=later or None)
    return replace(recipe, **{name: changes[name] for name in _RECIPE if name in changes})


def _rule(recipe: Recipe, changes: Mapping[str, Any]):
    rules = [name for name in ("share", "threshold") if name in changes]
    mixture = {name: changes[name] for name in _MIXTURE if name in changes}
    if len(rules) + bool(mixture) > 1:
        both = [*rules, *mixture]
        raise UserError(f"{both[0]!r} and {both[1]!r} are of two different rules; set one of them")
    if "share" in changes:
        return ByShare(changes["share"])
    if "threshold" in changes:
        return ByThreshold(changes["threshold"])
    if mixture:
        kept = recipe.rule if isinstance(recipe.rule, ByMixture) else ByMixture()
        return replace(kept, **mixture)
    return recipe.rule


def _with_lengths(stages: tuple[Stage, ...], lengths: Mapping[type, Any]) -> tuple[Stage, ...]:
    changed = []
    for stage in stages:
        length = lengths.get(type(stage), stage.length)
        if not isinstance(length, int) or length < 0:
            raise UserError(f"a stage's length must be a whole number from 0, not {length!r}")
        if length:
            changed.append(stage.scaled_to(length / stage.length))
    return tuple(changed)


def _layers(layers: Any) -> tuple[int, ...]:
    if isinstance(layers, int) and not isinstance(layers, bool) and layers >= 0:
        return tuple(range(layers))
    if isinstance(layers, list) and all(isinstance(k, int) for k in layers):
        return tuple(layers)
    raise UserError(f"layers must be a count of zero or more or a list of numbers, not {layers!r}")
