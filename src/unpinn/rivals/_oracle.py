"""oracle: the true noise of every reading is known. The limit, not a method for real readings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unpinn._errors import UserError
from unpinn.rivals._judged import partition_of
from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._ppinn import asked_recipe
from unpinn.training import Fit, NoiseEstimate, Partition, train
from unpinn.unlearning import unlearn


def true_weights(task: Task) -> np.ndarray:
    r"""Each reading's precision $1/\sigma^2$ in units of the best reading's, (N,)."""
    sigma = np.asarray(task.true_sigma, np.float64)
    count = len(task.observations)
    if sigma.shape != (count,) or not (np.isfinite(sigma).all() and (sigma > 0).all()):
        raise UserError(f"the oracle needs {count} true noise levels above zero, one a reading")
    return (sigma.min() / sigma) ** 2


def truly_good(task: Task) -> np.ndarray:
    """The readings below the geometric middle of the noise levels; all where there is one level."""
    weight = true_weights(task)
    return weight >= np.sqrt(weight.min())


def _full(task: Task) -> Fit:
    weight = true_weights(task)
    fit = train(
        task.problem, task.observations, task.protocol, task.seed, weights=weight,
        directory=task.place("oracle"), watcher=task.watcher,
    )  # fmt: skip
    return replace(fit, partition=_true_partition(task, fit))


def _pruned(task: Task) -> Fit:
    recipe = asked_recipe(task)
    true_weights(task)
    baseline = task.trained_baseline()
    return unlearn(
        baseline, recipe, partition=_true_partition(task, baseline),
        directory=task.place("unlearn"), watcher=task.watcher,
    )  # fmt: skip


def _true_partition(task: Task, fit: Fit) -> Partition:
    good, sigma = truly_good(task), np.asarray(task.true_sigma, np.float64)
    size = lambda part: float(np.sqrt(np.mean(part**2)))  # noqa: E731
    low, some = size(sigma[good]), bool((~good).any())
    high = size(sigma[~good]) if some else low
    noise = NoiseEstimate(low, high, float(np.mean(~good)), 2 if some else 1, 0.0)
    weight = true_weights(task)
    return partition_of(fit, good, "the true noise levels", weight=weight, noise=noise)


ORACLE = register(
    Method("oracle", "the full network, told every reading's true noise", _full, needs_truth=True)
)

ORACLE_PRUNED = register(
    Method(
        "oracle-pruned",
        "pruned and fine-tuned as ppinn is, told every reading's true noise",
        _pruned,
        needs_baseline=True,
        needs_truth=True,
    )
)
