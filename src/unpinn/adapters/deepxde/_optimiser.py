"""The user's own optimiser: kept, brought back, moved from one network to another."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from deepxde.optimizers.config import LBFGS_options


class Optimiser:
    """A compiled model's optimiser at one moment; its class and rates stay as the user set them."""

    def __init__(self, model: Any):
        self.optimiser: torch.optim.Optimizer = model.opt
        self.scheduler = model.lr_scheduler
        self.groups = [list(group["params"]) for group in model.opt.param_groups]
        self.state = copy.deepcopy(model.opt.state_dict())
        schedule = None if self.scheduler is None else self.scheduler.state_dict()
        self.schedule = copy.deepcopy(schedule)

    def restore(self) -> None:
        """Everything as it was at that moment."""
        _train(self.optimiser, self.groups)
        # Optimisers go on with the very tensors that they are given.
        self.optimiser.load_state_dict(copy.deepcopy(self.state))
        if self.scheduler is not None:
            self.scheduler.load_state_dict(copy.deepcopy(self.schedule))


def follow(optimiser: torch.optim.Optimizer, old: torch.nn.Module, new: torch.nn.Module) -> None:
    """Train the new network's parameters instead of the old one's of the same name.

    Moments belong to the old shapes, so they start anew.
    """
    named = dict(new.named_parameters())
    successor = {id(p): named[name] for name, p in old.named_parameters() if name in named}
    known = {id(p) for p in successor.values()}
    groups = [[successor.get(id(p), p) for p in g["params"]] for g in optimiser.param_groups]
    groups[0] += [p for p in named.values() if id(p) not in known]
    _train(optimiser, groups)
    optimiser.state.clear()


@contextmanager
def at_most(model: Any, iterations: int) -> Iterator[None]:
    """Stop L-BFGS, which DeepXDE lets run to its own limit, after so many iterations.

    Its memory is of a loss with other weights, so it starts anew.
    """
    if model.opt_name != "L-BFGS":
        yield
        return
    model.opt.state.clear()
    group = model.opt.param_groups[0]
    own, step = LBFGS_options["maxiter"], group["max_iter"]
    LBFGS_options["maxiter"] = min(own, iterations)
    group["max_iter"] = min(step, iterations)
    try:
        yield
    finally:
        LBFGS_options["maxiter"], group["max_iter"] = own, step


def _train(optimiser: torch.optim.Optimizer, groups: list[list[torch.Tensor]]) -> None:
    for group, parameters in zip(optimiser.param_groups, groups, strict=True):
        group["params"] = list(parameters)
    # L-BFGS and its like keep a list of their own, and its size.
    if hasattr(optimiser, "_params"):
        optimiser._params = optimiser.param_groups[0]["params"]
    if hasattr(optimiser, "_numel_cache"):
        optimiser._numel_cache = None
