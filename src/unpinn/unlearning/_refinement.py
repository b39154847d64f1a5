"""Further fine-tunings once the partition has settled: how many, and how firm the equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from unpinn.unlearning._evidence import Evidence
from unpinn.unlearning._recipe import Recipe

# The least and the largest weight of the equations that an estimated noise may call for. A freshly
# pruned network that is held to the equations more firmly than its baseline was would rather give
# up the readings, where a trivial solution is at hand.
_PHYSICS = (1e-4, 1.0)
# How many fine-tunings may follow once the partition has settled.
_REFINEMENTS = 10

Tuned = TypeVar("Tuned")


def equations_weight(noise: float, tolerance: float) -> float:
    """The equations' weight that the noise of good readings calls for, within bounds.

    Arguments:
        noise: in units of the readings.
        tolerance: the residual at which the equations weigh as much as the noise.
    """
    return float(np.clip((noise / tolerance) ** 2, *_PHYSICS))


def refine(
    start: Tuned,
    recipe: Recipe,
    step: Callable[[Tuned, int, float], Tuned],
    judge: Callable[[Tuned, Tuned], Evidence | None],
    residual: Callable[[Tuned], float],
) -> tuple[Tuned, int]:
    """Go on as long as it pays, and raise the equations' weight step by step.

    The true fields satisfy the equations exactly, so their weight has no best value but as
    much as the optimiser can follow; started from a network that is already close, it can
    follow further. While the readings' likelihood still rises, the weight stays as it is; where
    it has settled, the weight is raised. A step after which the likelihood has fallen beyond
    chance is thrown away, and is the last.

    Gives the last model that was no worse, and how often its weight had been raised.

    Arguments:
        start: a fine-tuned model.
        recipe: its stiffening, and what is firm enough.
        step: from a model, the number of the step and the factor of the equations' weight, the
            model after one more fine-tuning.
        judge: how two models compare; None where the second one failed.
        residual: how well the equations hold for a model, in units of their sizes.
    """
    if recipe.stiffening is None or recipe.tolerance is None:
        return start, 0
    current, raised, rising = start, 0, True
    for number in range(1, _REFINEMENTS + 1):
        if not rising:
            if residual(current) < recipe.firm:
                break
            raised += 1
        next_one = step(current, number, recipe.stiffening**raised)
        evidence = judge(current, next_one)
        if evidence is None or not evidence.accepts:
            raised -= not rising
            break
        current, rising = next_one, evidence.rises
    return current, raised
