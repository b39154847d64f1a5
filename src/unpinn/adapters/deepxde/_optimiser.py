"""The user's own optimiser, moved from one network's parameters to another's."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from deepxde.optimizers.config import LBFGS_options


class Optimiser:
    """A compiled model's optimiser; its class, rates and schedule stay as the user set them."""

    def __init__(self, model: Any):
        self.optimiser: torch.optim.Optimizer = model.opt
        self.scheduler = model.lr_scheduler
        self.counts_itself = model.opt_name == "L-BFGS"
        self.groups = [list(group["params"]) for group in model.opt.param_groups]
        self.state = copy.deepcopy(model.opt.state_dict())
        self.schedule = None if self.scheduler is None else dict(self.scheduler.state_dict())

    def follow(self, old: torch.nn.Module, new: torch.nn.Module) -> None:
        """Train the new network's parameters instead of the old one's of the same name.

        Moments belong to the old shapes, so they start anew.
        """
        named = dict(new.named_parameters())
        successor = {id(p): named[name] for name, p in old.named_parameters() if name in named}
        known = {id(p) for p in successor.values()}
        groups = [[successor.get(id(p), p) for p in group] for group in self.groups]
        groups[0] += [p for p in named.values() if id(p) not in known]
        self._train(groups)
        self.optimiser.state.clear()

    def restore(self) -> None:
        """Everything as it was when the model was given."""
        self._train(self.groups)
        self.optimiser.load_state_dict(self.state)
        if self.scheduler is not None:
            self.scheduler.load_state_dict(self.schedule)

    @contextmanager
    def at_most(self, iterations: int) -> Iterator[None]:
        """Stop L-BFGS, which DeepXDE lets run to its own limit, after so many iterations.

        Its memory is of a loss with other weights, so it starts anew.
        """
        if not self.counts_itself:
            yield
            return
        self.optimiser.state.clear()
        group = self.optimiser.param_groups[0]
        own, step = LBFGS_options["maxiter"], group["max_iter"]
        LBFGS_options["maxiter"] = min(own, iterations)
        group["max_iter"] = min(step, iterations)
        try:
            yield
        finally:
            LBFGS_options["maxiter"], group["max_iter"] = own, step

    def _train(self, groups: list[list[torch.Tensor]]) -> None:
        for group, parameters in zip(self.optimiser.param_groups, groups, strict=True):
            group["params"] = list(parameters)
        # L-BFGS and its like keep a list of their own, and its size.
        if hasattr(self.optimiser, "_params"):
            self.optimiser._params = self.optimiser.param_groups[0]["params"]
        if hasattr(self.optimiser, "_numel_cache"):
            self.optimiser._numel_cache = None
