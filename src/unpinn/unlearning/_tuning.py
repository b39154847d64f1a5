"""Part III of Algorithm 1: fine-tune on what is trusted, as long as it pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unpinn.network import Model
from unpinn.training import Fit, Partition, Pruning, Status, Watcher, reading_units, train
from unpinn.unlearning._evidence import compare_evidence, fresh_residual
from unpinn.unlearning._recipe import Recipe

# The least and the largest weight of the equations that an estimated noise may call for. A freshly
# pruned network that is held to the equations more firmly than its baseline was would rather give
# up the readings, where a trivial solution is at hand.
_PHYSICS = (1e-4, 1.0)
# How many fine-tunings may follow once the partition has settled.
_REFINEMENTS = 10


@dataclass(frozen=True, eq=False)
class Tuning:
    """How a baseline is fine-tuned, in any round.

    Arguments:
        fit: the baseline.
        recipe: its stages and weights.
        directory: where the rounds keep their checkpoints.
        watcher: is told how it goes.
        method: the name that the record carries.
    """

    fit: Fit
    recipe: Recipe
    directory: Any
    watcher: Watcher | None
    method: str

    def __call__(
        self, current: Fit, model: Model, partition: Partition, pruning: Pruning | None,
        name: str, stiffness: float = 1.0,
    ) -> Fit:  # fmt: skip
        """Train the smaller network on what is trusted; the record tells of all rounds."""
        fit, recipe = self.fit, self.recipe
        stages = recipe.stages if current is fit or recipe.later is None else recipe.later
        weights = {**fit.protocol.weights, **recipe.weights, **self._physics(partition, stiffness)}
        protocol = replace(fit.protocol, stages=stages, weights=weights, name=recipe.name)
        where = None if self.directory is None else f"{self.directory}/{name}"
        tuned = train(
            fit.problem, fit.observations, protocol, fit.seed, weights=partition.weight,
            start=model, scales=fit.details.get("scales"), directory=where, watcher=self.watcher,
            method=self.method,
        )  # fmt: skip
        history, seconds, rounds, status = tuned.history, dict(tuned.seconds), 1, tuned.status
        if current is not fit:
            history = current.history.joined(history)
            seconds["total"] += current.seconds["total"]
            rounds += current.details["rounds"]
            if not current.status.good:
                # What a round has lost is not made good by the next one's ending well.
                both = f"{current.status.reason}; then {status.reason}"
                status = Status(current.status.code, both)
        # Whether an unknown ended at its bound is told of this training, not of an earlier one.
        earlier = {name: value for name, value in fit.details.items() if name != "at_bound"}
        return replace(
            tuned, partition=partition, pruning=pruning, before=fit, recipe=recipe.name,
            history=history, seconds=seconds, status=status,
            details={**earlier, **tuned.details, "rounds": rounds},
        )  # fmt: skip

    def _physics(self, partition: Partition, stiffness: float) -> dict[str, float]:
        """The equations' weight that the estimated noise of good readings calls for."""
        fit, tolerance = self.fit, self.recipe.tolerance
        if tolerance is None or partition.noise is None or fit.observations is None:
            return {}
        units = reading_units(fit.model, fit.observations) / (partition.noise.factors or 1.0)
        relative = partition.noise.low / float(np.sqrt(np.mean(units**2)))
        return {"equations": stiffness * float(np.clip((relative / tolerance) ** 2, *_PHYSICS))}

    def refined(self, current: Fit, look: Callable[[Fit], Partition]) -> Fit:
        """Go on as long as it pays, and raise the equations' weight step by step.

        The true fields satisfy the equations exactly, so their weight has no best value but as
        much as the optimiser can follow; started from a network that is already close, it can
        follow further. While the readings' likelihood still rises, the weight stays as it is; where
        it has settled, the weight is raised. A step after which the likelihood has fallen beyond
        chance is thrown away, and is the last.

        Arguments:
            current: a fine-tuned fit.
            look: finds a fit's partition.
        """
        factor, scales = self.recipe.stiffening, self.fit.details.get("scales") or {}
        if factor is None or self.recipe.tolerance is None:
            return current
        spent, raised, rising = current.seconds["total"], 0, True
        for number in range(1, _REFINEMENTS + 1):
            if not rising:
                if fresh_residual(current, scales) < self.recipe.firm:
                    break
                raised += 1
            next_one = self(
                current, current.model, look(current), current.pruning, f"refinement{number}",
                factor**raised,
            )  # fmt: skip
            spent += next_one.seconds["total"] - current.seconds["total"]
            evidence = compare_evidence(current, next_one)
            if not next_one.status.good or not evidence.accepts:
                raised -= not rising
                break
            current, rising = next_one, evidence.rises
        seconds = {**current.seconds, "total": spent}
        return replace(current, seconds=seconds).with_details(stiffened=raised)
