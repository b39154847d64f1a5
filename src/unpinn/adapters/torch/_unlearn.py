"""Unlearn a PINN that was trained in PyTorch.

>>> from dataclasses import replace
>>> net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
>>> x = torch.linspace(-1, 1, 40)[:, None]
>>> slope = lambda net, x: torch.autograd.grad(net(x).sum(), x, create_graph=True)[0] - 1.0
>>> short = default_recipe().scaled_to(0.02).once()
>>> recipe = replace(short, accept=False, stiffening=None)
>>> broken = torch.arange(40)[:, None] % 4 == 0
>>> values = (net(x) + torch.where(broken, 1.0, 0.01) * torch.cos(40 * x)).detach()
>>> result = unlearn(net, x, values, slope, recipe)
>>> type(result.module).__name__, result.pruning.before
('Sequential', (8,))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from unpinn._errors import UserError
from unpinn.adapters._algorithm import run_algorithm
from unpinn.adapters._records import Unlearned
from unpinn.adapters.torch._checks import (
    as_matrix,
    as_tensor,
    check_module,
    check_readings,
    check_trainable,
    check_unknowns,
    equation_sizes,
)
from unpinn.adapters.torch._probe import call, evaluate, evaluating
from unpinn.adapters.torch._subject import Parts, TorchSubject, Train
from unpinn.adapters.torch._tuning import check_stage
from unpinn.training import Partition
from unpinn.unlearning import Recipe, default_recipe


def unlearn(
    module: Any, points: Any, values: Any,
    residual: Callable[[torch.nn.Module, torch.Tensor], Any], recipe: Recipe | None = None, *,
    unknowns: Mapping[str, torch.Tensor] | None = None, columns: Sequence[int] | None = None,
    forward: Callable[[torch.nn.Module, torch.Tensor], torch.Tensor] | None = None,
    conditions: Callable[[torch.nn.Module], torch.Tensor] | None = None, collocation: Any = None,
    sizes: float | int | Sequence[float | int] = 1.0, layers: Sequence[str] | None = None,
    train: Train | None = None, partition: Partition | None = None, seed: int = 0,
    untrained: bool = False,
) -> Unlearned:  # fmt: skip
    """Make a trained PyTorch module forget the readings that should not be trusted.

    The module that is passed stays as it is; a cleaned copy of the same class is returned.
    Unknowns that are not part of the module are trained where they are.

    Arguments:
        module: any module with hidden linear layers.
        points: where the readings are, (N, dimensions).
        values: what was read, (N,) or (N, quantities), NaN where missing.
        residual: from a module and points that carry gradients, the equations' residuals, (n,),
            (n, components) or a list of such.
        recipe: partition, pruning and fine-tuning; the default one needs no number set by hand.
        unknowns: the unknown numbers that the residual reads, by name.
        columns: which outputs the values are of; the first ones unless told.
        forward: how the module is evaluated, (n, outputs); `module(points)` unless told.
        conditions: from a module, a scalar that is added to the loss of the default fine-tuning.
        collocation: where the equations are enforced while fine-tuning; at the readings' points
            unless told.
        sizes: how large the terms of each equation are; residuals are divided by it in the score
            and in fine-tuning, so that they mean the same whatever the units.
        layers: names of the linear layers to prune, as in `module.named_modules()`.
        train: fine-tuning of your own, given a module, each reading's weight and, if it names it,
            `stiffness`, a factor for the equations' weight.
        partition: a partition to use instead of finding one.
        seed: for criteria that draw.
        untrained: do not refuse a module that is no better than a constant.
    """
    recipe = recipe or default_recipe()
    check_module(module)
    check_trainable(module)
    if train is None:
        for stage in (*recipe.stages, *(recipe.later or ())):
            check_stage(stage)
    where, read = as_matrix(points, "points"), as_matrix(values, "values")
    check_readings(where, read)
    named = dict(unknowns or {})
    check_unknowns(named, module)
    enforced = where if collocation is None else as_matrix(collocation, "collocation points")
    if enforced.shape[1] != where.shape[1]:
        raise UserError(
            f"the collocation points have {enforced.shape[1]} columns, the readings' "
            f"{where.shape[1]}"
        )
    parts = Parts(
        residual, forward or call, _columns(module, where, read.shape[1], columns, forward or call),
        named, conditions, as_tensor(enforced, module), equation_sizes(sizes), layers, train,
    )  # fmt: skip
    subject = TorchSubject(module, where, read, parts, recipe)
    return run_algorithm(subject, recipe, partition, seed, untrained)


def _columns(module, points, quantities: int, columns, forward) -> tuple[int, ...]:
    """Which outputs are read, checked against how many there are."""
    chosen = tuple(range(quantities)) if columns is None else tuple(int(c) for c in columns)
    few = as_tensor(points[:2], module)
    try:
        with evaluating(module):
            outputs = evaluate(module, few, forward).shape[1]
    except UserError:
        raise
    except RuntimeError as error:
        raise UserError(
            f"the module cannot be evaluated at points with {points.shape[1]} coordinates "
            f"({str(error).splitlines()[0]})"
        ) from error
    if len(chosen) != quantities:
        raise UserError(f"the values have {quantities} columns, but columns names {len(chosen)}")
    for column in chosen:
        if not 0 <= column < outputs:
            raise UserError(
                f"the values are of output {column}, but the module has {outputs} outputs; say "
                "which in columns="
            )
    return chosen
