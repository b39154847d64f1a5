"""Part III of Algorithm 1: fine-tune on what is trusted, as long as it pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unpinn.network import Model
from unpinn.training import Fit, Partition, Pruning, Status, Watcher, reading_units, train
from unpinn.unlearning._evidence import Evidence, compare_evidence, fresh_residual
from unpinn.unlearning._recipe import Recipe
from unpinn.unlearning._refinement import equations_weight, refine


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
        return {"equations": stiffness * equations_weight(relative, tolerance)}

    def refined(self, current: Fit, look: Callable[[Fit], Partition]) -> Fit:
        """Go on as long as it pays, and raise the equations' weight step by step.

        Arguments:
            current: a fine-tuned fit.
            look: finds a fit's partition.
        """
        if self.recipe.stiffening is None or self.recipe.tolerance is None:
            return current
        scales, spent = self.fit.details.get("scales") or {}, current.seconds["total"]

        def step(fit: Fit, number: int, factor: float) -> Fit:
            nonlocal spent
            name = f"refinement{number}"
            found = self(fit, fit.model, look(fit), fit.pruning, name, factor)
            # What is thrown away has taken its time all the same.
            spent += found.seconds["total"] - fit.seconds["total"]
            return found

        def judge(fit: Fit, found: Fit) -> Evidence | None:
            return compare_evidence(fit, found) if found.status.good else None

        best, raised = refine(
            current, self.recipe, step, judge, lambda fit: fresh_residual(fit, scales)
        )
        seconds = {**best.seconds, "total": spent}
        return replace(best, seconds=seconds).with_details(stiffened=raised)
