"""rt: from scratch on the readings that the baseline's partition retains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._ppinn import asked_recipe
from unpinn.training import Fit, train
from unpinn.unlearning import scores_of


def _run(task: Task) -> Fit:
    recipe = asked_recipe(task)
    baseline = task.trained_baseline()
    partition = recipe.rule(scores_of(baseline, recipe.residual_weight))
    weight = partition.retained.astype(np.float64)
    held_out = baseline.details.get("held_out")
    if held_out:
        weight[np.asarray(held_out)] = 0.0
    fit = train(
        task.problem, task.observations, task.protocol, task.seed, weights=weight,
        directory=task.place("retrain"), watcher=task.watcher,
    )  # fmt: skip
    return replace(fit, partition=replace(partition, weight=weight), before=baseline)


RETRAIN = register(
    Method("rt", "train anew on the retained readings alone", _run, needs_baseline=True)
)
