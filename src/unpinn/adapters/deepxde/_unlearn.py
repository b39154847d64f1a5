"""Unlearn a PINN that was trained in DeepXDE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from unpinn._errors import UserError
from unpinn.adapters._algorithm import run_algorithm
from unpinn.adapters._records import Unlearned
from unpinn.adapters.deepxde._readings import find_observations, gather
from unpinn.adapters.deepxde._subject import DeepXDESubject, Wishes, check_model
from unpinn.adapters.torch._checks import (
    check_module,
    check_readings,
    check_trainable,
    check_unknowns,
    equation_sizes,
)
from unpinn.training import Partition
from unpinn.unlearning import Recipe, default_recipe


def unlearn(
    model: Any,
    recipe: Recipe | None = None,
    *,
    unknowns: Mapping[str, torch.Tensor] | None = None,
    observations: Sequence[Any] | None = None,
    layers: Sequence[str] | None = None,
    iterations: int | None = None,
    sizes: float | int | Sequence[float | int] = 1.0,
    callbacks: Sequence[Any] | None = None,
    train: Callable[..., Any] | None = None,
    partition: Partition | None = None,
    seed: int = 0,
    untrained: bool = False,
    verbose: int = 0,
) -> Unlearned:
    """Make a compiled, trained `deepxde.Model` forget the readings that should not be trusted.

    Readings, residuals and unknowns are taken from the model itself. Afterwards `model.net` is the
    smaller network, the observations in `model.data.bcs` carry their weights, and everything else
    (conditions, optimiser, loss weights, callbacks) is as it was, so that `model.train` goes on.
    Where neurons are removed, the network that the model had before is left as it was.

    Arguments:
        model: on the PyTorch backend, with readings as `PointSetBC` or `PointSetOperatorBC`.
        recipe: how to partition, prune and refine, how often, and whether to take the result; its
            stages only say how long to fine-tune.
        unknowns: names for the unknown numbers; the model's external trainable variables, by
            number, unless told.
        observations: which of the model's conditions are readings; all `PointSetBC`s unless told.
        layers: names of the linear layers to prune, as in `model.net.named_modules()`.
        iterations: of `model.train` in each round and refinement (of L-BFGS, at most); as many as
            the recipe's stages have unless told.
        sizes: how large the terms of each equation are; residuals are divided by it in the score.
        callbacks: DeepXDE callbacks for it.
        train: fine-tuning of your own, given the model, which may compile it anew, and, if it names
            it, `stiffness`, a factor for the equations' weight.
        partition: a partition to use instead of finding one.
        seed: for criteria that draw.
        untrained: do not refuse a model that is no better than a constant.
        verbose: whether DeepXDE prints while it fine-tunes.
    """
    recipe = recipe or default_recipe()
    check_model(model)
    check_module(model.net)
    check_trainable(model.net)
    named = _unknowns(model, unknowns)
    check_unknowns(named, model.net)
    readings = gather(find_observations(model.data, observations))
    check_readings(readings.points, readings.values)
    if iterations is not None and iterations < 0:
        raise UserError(f"fine-tuning needs iterations of zero or more, not {iterations}")
    sized = equation_sizes(sizes)
    wishes = Wishes(named, layers, iterations, sized, callbacks, train, verbose)
    subject = DeepXDESubject(model, readings, wishes, recipe)
    return run_algorithm(subject, recipe, partition, seed, untrained)


def _unknowns(model: Any, given: Mapping[str, Any] | None) -> dict[str, Any]:
    variables = list(model.external_trainable_variables)
    if given is None:
        return {f"variable {number + 1}": v for number, v in enumerate(variables)}
    for name, variable in given.items():
        if not any(variable is other for other in variables):
            raise UserError(
                f"the unknown {name!r} is not trained by this model; pass it to model.compile in "
                "external_trainable_variables"
            )
    return dict(given)
