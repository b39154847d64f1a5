"""A trained PyTorch module with its readings, as Algorithm 1 sees it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unpinn._errors import UserError
from unpinn.adapters._records import Snapshot
from unpinn.adapters._subject import takes_stiffness
from unpinn.adapters.torch._checks import as_tensor, check_hidden, in_sizes, residual_columns
from unpinn.adapters.torch._compaction import compacted
from unpinn.adapters.torch._probe import Forward, evaluate, evaluating
from unpinn.adapters.torch._prunable import TorchPrunable
from unpinn.adapters.torch._structure import HiddenLayer, find_layers
from unpinn.adapters.torch._tuning import (
    Conditions,
    Loss,
    Residual,
    data_weights,
    physics_weight,
    tune,
)
from unpinn.training import Partition, Status
from unpinn.unlearning import Recipe

# Of a module, the readings' weights and, if it wants it, the factor `stiffness`.
Train = Callable[..., Any]

_FRESH_POINTS = 512


@dataclass(frozen=True, eq=False)
class Parts:
    """What the user said about the module.

    Arguments:
        residual: the equations' residuals of a module at points.
        forward: how the module is evaluated.
        columns: which outputs are read.
        unknowns: the unknown numbers, by name.
        conditions: further terms of the default fine-tuning's loss.
        collocation: where the equations are enforced.
        sizes: what each component of the residual is divided by.
        layers: names of the layers to prune.
        train: fine-tuning of the user's own.
    """

    residual: Residual
    forward: Forward
    columns: tuple[int, ...]
    unknowns: Mapping[str, torch.Tensor]
    conditions: Conditions | None
    collocation: torch.Tensor
    sizes: tuple[float, ...]
    layers: Sequence[str] | None
    train: Train | None


@dataclass(frozen=True, eq=False)
class Kept:
    """A moment of a subject: modules are never trained where they are, numbers outside them are.

    Arguments:
        module: the module then.
        unknowns: the values of the unknowns that were passed.
    """

    module: torch.nn.Module
    unknowns: dict[str, torch.Tensor]


class TorchSubject:
    """The module as it is now; the one that was given is never changed."""

    def __init__(
        self, module: torch.nn.Module, points: np.ndarray, values: np.ndarray, parts: Parts,
        recipe: Recipe,
    ):  # fmt: skip
        self.points, self.values = points, values
        self.parts, self.now = parts, module
        self.given = self.keep()
        self.places = as_tensor(points, module)
        self.now = _copied(module)
        # An unknown that is part of the module is copied with it, so it is known by its name.
        inside = {id(p): name for name, p in module.named_parameters()}
        self.names = {n: inside.get(id(t)) for n, t in parts.unknowns.items()}
        self.layers: tuple[HiddenLayer, ...] = ()
        if recipe.schedule is not None:
            self.layers = find_layers(module, self.places, parts.forward, parts.layers)
            check_hidden(module, self.layers)

    def look(self) -> Snapshot:
        """Misfits and residuals of the module as it is now."""
        with evaluating(self.now):
            output = evaluate(self.now, self.places, self.parts.forward)
            predicted = output[:, list(self.parts.columns)].cpu().numpy().astype(np.float64)
            residuals = self._residuals(self.places)
            fresh = self._residuals(self._fresh_points())
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.sqrt(np.mean(fresh**2)))
        return Snapshot(predicted - self.values, residuals, size, self._unknowns())

    def prunable(self, retained: np.ndarray) -> TorchPrunable:
        """The module with its hidden layers."""
        return TorchPrunable(self.now, self.places, self.parts.forward, self.layers, retained)

    def layer_names(self) -> tuple[str, ...]:
        """The names of the hidden layers."""
        return tuple(layer.name for layer in self.layers)

    def adopt(self, smaller: TorchPrunable) -> str:
        """Compact the pruned module and go on with it."""
        result = compacted(smaller)
        self.now = result.module
        return result.told

    def tune(self, partition: Partition, recipe: Recipe, later: bool, stiffness: float) -> Status:
        """Fine-tune by the recipe's stages, or by the user's own function."""
        # What was kept earlier is this very module, so it is a copy that is trained.
        self.now = _copied(self.now)
        counts = as_tensor(partition.weight, self.now)
        if self.parts.train is not None:
            more = {"stiffness": stiffness} if self.stiffens() else {}
            trained = self.parts.train(self.now, counts, **more)
            if isinstance(trained, torch.nn.Module):
                self.now = trained
            return Status("finished", "fine-tuned by the function that was passed")
        values = as_tensor(self.values, self.now)
        loss = Loss(
            self.places, torch.nan_to_num(values), data_weights(values, counts),
            self.parts.columns, self.parts.collocation, self.parts.forward, self._equations,
            self.parts.conditions,
        )  # fmt: skip
        outside = [t for n, t in self.parts.unknowns.items() if self.names[n] is None]
        parameters = [*self.now.parameters(), *outside]
        stages = recipe.later if later and recipe.later is not None else recipe.stages
        weights = {**recipe.weights, **physics_weight(partition, recipe, stiffness)}
        return tune(self.now, loss, stages, weights, parameters)

    def stiffens(self) -> bool:
        """The default fine-tuning does, the user's own one where it has an argument for it."""
        return self.parts.train is None or takes_stiffness(self.parts.train)

    def keep(self) -> Kept:
        """The module and the unknowns outside it."""
        return Kept(self.now, {n: t.detach().clone() for n, t in self.parts.unknowns.items()})

    def bring_back(self, kept: Kept) -> None:
        """The module and the unknowns' values then."""
        self.now = kept.module
        with torch.no_grad():
            for name, tensor in self.parts.unknowns.items():
                tensor.copy_(kept.unknowns[name])

    def restore(self) -> None:
        """The module that was given, and the unknowns' values then."""
        self.bring_back(self.given)

    def module(self) -> torch.nn.Module:
        """The module as it is now."""
        return self.now

    def _equations(self, module: torch.nn.Module, points: torch.Tensor) -> torch.Tensor:
        given = points.detach().clone().requires_grad_(True)
        columns = residual_columns(self.parts.residual(module, given), len(points))
        return in_sizes(columns, self.parts.sizes)

    def _residuals(self, points: torch.Tensor) -> np.ndarray:
        columns = self._equations(self.now, points)
        if self.parts.train is None and not columns.requires_grad:
            raise UserError(
                "the residual carries no gradient, so it cannot be trained on; differentiate with "
                "create_graph=True and leave out detach(), or pass train= with a training of your "
                "own"
            )
        return columns.detach().cpu().numpy().astype(np.float64)

    def _fresh_points(self) -> torch.Tensor:
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        drawn = np.random.default_rng(7_919).random((_FRESH_POINTS, len(low)))
        return as_tensor(low + drawn * (high - low), self.now)

    def _unknowns(self) -> dict[str, float]:
        found = {}
        for name, tensor in self.parts.unknowns.items():
            inside = self.names[name]
            current = tensor if inside is None else self.now.get_parameter(inside)
            found[name] = float(current.detach().reshape(()))
        return found


def _copied(module: torch.nn.Module) -> torch.nn.Module:
    try:
        return copy.deepcopy(module)
    except Exception as error:  # whatever an attribute of a user's module does when copied
        raise UserError(
            f"the module cannot be copied ({type(error).__name__}: {error}); remove tensors that "
            "it has kept from a forward pass"
        ) from error
