"""Fine-tuning a PyTorch module by the stages of a recipe: Adam, then perhaps L-BFGS."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unpinn._errors import UserError
from unpinn.adapters.torch._probe import Forward
from unpinn.training import Adam, Lbfgs, Partition, Status
from unpinn.unlearning import Recipe
from unpinn.unlearning._refinement import equations_weight

Residual = Callable[[torch.nn.Module, torch.Tensor], torch.Tensor]
Conditions = Callable[[torch.nn.Module], torch.Tensor]

_SAVE_EVERY = 100


@dataclass(frozen=True, eq=False)
class Loss:
    """Readings, equations and further conditions, as the package's own training weighs them.

    Arguments:
        points: where the readings are, (N, dimensions).
        values: what was read, zero where missing, (N, quantities).
        weights: how much each value counts, adding up to one, (N, quantities).
        columns: which outputs are read.
        collocation: where the equations are enforced.
        forward: how the module is evaluated.
        residual: the equations' residuals, (n, components), at points.
        conditions: further terms, or None.
    """

    points: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor
    columns: tuple[int, ...]
    collocation: torch.Tensor
    forward: Forward
    residual: Residual
    conditions: Conditions | None

    def __call__(
        self, module: torch.nn.Module, groups: Sequence[str], factors: Mapping[str, float]
    ) -> torch.Tensor:
        """The weighted sum."""
        total = torch.zeros((), dtype=self.values.dtype, device=self.values.device)
        if "data" in groups:
            output = self.forward(module, self.points.clone().requires_grad_(True))
            misfit = output[:, list(self.columns)] - self.values
            total = total + factors.get("data", 1.0) * (self.weights * misfit**2).sum()
        if "equations" in groups:
            residual = self.residual(module, self.collocation)
            total = total + factors.get("equations", 1.0) * (residual**2).mean()
        if "conditions" in groups and self.conditions is not None:
            total = total + factors.get("conditions", 1.0) * self.conditions(module)
        return total


def physics_weight(partition: Partition, recipe: Recipe, stiffness: float) -> dict[str, float]:
    """The equations' weight that the estimated noise of good readings calls for.

    Arguments:
        partition: with the noise.
        recipe: with the tolerance.
        stiffness: a factor.
    """
    noise = partition.noise
    if recipe.tolerance is None or noise is None:
        return {}
    units = 1.0 / np.asarray(noise.factors or 1.0)
    level = noise.low / float(np.sqrt(np.mean(units**2)))
    return {"equations": stiffness * equations_weight(level, recipe.tolerance)}


def data_weights(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Each value's share of the data term: its reading's weight, nothing where it is missing."""
    wide = torch.where(torch.isnan(values), 0.0, weight[:, None].to(values.dtype))
    return wide / wide.sum()


def tune(
    module: torch.nn.Module, loss: Loss, stages: Sequence[Any], weights: Mapping[str, float],
    parameters: Sequence[torch.Tensor],
) -> Status:  # fmt: skip
    """Run a recipe's stages on a module and further unknowns, in place."""
    for stage in stages:
        check_stage(stage)
    for stage in stages:
        factors = {**weights, **stage.weights}
        trained = [p for p in parameters if p.requires_grad]
        value = lambda groups=stage.groups, f=factors: loss(module, groups, f)  # noqa: E731
        good = (
            _adam(stage, value, trained)
            if isinstance(stage, Adam)
            else _lbfgs(stage, value, trained)
        )
        if not good:
            reason = f"fine-tuning by {stage.kind} diverged; the last good state was kept"
            return Status("diverged", reason)
    return Status("finished", ", ".join(f"{s.kind}: {s.length} epochs" for s in stages))


def check_stage(stage: Any) -> None:
    """Refuse what only the package's own training can do."""
    if not isinstance(stage, (Adam, Lbfgs)):
        raise UserError(f"fine-tuning is by Adam or Lbfgs, not by {type(stage).__name__}")
    names = ("balance", "rescale", "batch", "dropout")
    wrong = [name for name in names if getattr(stage, name, None)]
    if wrong:
        raise UserError(
            f"fine-tuning a PyTorch module cannot do {wrong[0]!r} of {type(stage).__name__}; leave "
            "it out, or pass train= with a training of your own"
        )


def _adam(stage: Adam, loss: Callable[[], torch.Tensor], parameters: list[torch.Tensor]) -> bool:
    kind = torch.optim.AdamW if stage.decay else torch.optim.Adam
    first, second = stage.betas
    optimiser = kind(parameters, lr=stage.rate, betas=(first, second), weight_decay=stage.decay)
    good = _state(parameters)
    for epoch in range(stage.epochs):
        for group in optimiser.param_groups:
            group["lr"] = _rate(stage, epoch)
        optimiser.zero_grad()
        value = loss()
        if not torch.isfinite(value):
            _put_back(parameters, good)
            return False
        if epoch % _SAVE_EVERY == 0:
            good = _state(parameters)
        value.backward()
        optimiser.step()
    return _finite_or_back(loss, parameters, good)


def _lbfgs(stage: Lbfgs, loss: Callable[[], torch.Tensor], parameters: list[torch.Tensor]) -> bool:
    optimiser = torch.optim.LBFGS(
        parameters, lr=1.0, max_iter=stage.iterations, max_eval=2 * stage.iterations,
        tolerance_grad=stage.tolerance, tolerance_change=0.0, history_size=stage.history,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    good = _state(parameters)
    if stage.iterations:
        optimiser.step(closure)
    return _finite_or_back(loss, parameters, good)


def _rate(stage: Adam, epoch: int) -> float:
    if stage.schedule == "constant":
        return stage.rate
    share = min(epoch / max(stage.epochs, 1), 1.0)
    return stage.rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share)))


def _state(parameters: list[torch.Tensor]) -> list[torch.Tensor]:
    return [copy.deepcopy(p.detach()) for p in parameters]


def _put_back(parameters: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    with torch.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(value)


def _finite_or_back(loss, parameters: list[torch.Tensor], good: list[torch.Tensor]) -> bool:
    if torch.isfinite(loss()):
        return True
    _put_back(parameters, good)
    return False
