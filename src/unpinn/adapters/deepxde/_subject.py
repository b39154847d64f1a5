"""A compiled, trained DeepXDE model, as Algorithm 1 sees it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import deepxde as dde
import numpy as np
import torch
from deepxde import utils

from unpinn._errors import UserError
from unpinn.adapters._records import Snapshot
from unpinn.adapters.deepxde._optimiser import Optimiser
from unpinn.adapters.deepxde._readings import Readings, weighted
from unpinn.adapters.torch._checks import check_hidden, in_sizes, residual_columns
from unpinn.adapters.torch._compaction import compacted
from unpinn.adapters.torch._probe import evaluating
from unpinn.adapters.torch._prunable import TorchPrunable
from unpinn.adapters.torch._structure import HiddenLayer, find_layers
from unpinn.training import Partition, Status
from unpinn.unlearning import Recipe

Train = Callable[[Any], Any]

_FRESH_POINTS = 512


@dataclass(frozen=True, eq=False)
class Wishes:
    """What the user said about the model.

    Arguments:
        unknowns: the unknown numbers, by name.
        layers: names of the layers to prune.
        iterations: of each round's fine-tuning.
        sizes: what each component of the residual is divided by.
        callbacks: of the fine-tuning.
        train: fine-tuning of the user's own.
        verbose: whether DeepXDE prints while it fine-tunes.
    """

    unknowns: Mapping[str, torch.Tensor]
    layers: Sequence[str] | None
    iterations: int
    sizes: tuple[float, ...]
    callbacks: Sequence[Any] | None
    train: Train | None
    verbose: int


class DeepXDESubject:
    """A model with its network, conditions, unknowns and optimiser as they were and as they are."""

    def __init__(self, model: Any, readings: Readings, wishes: Wishes, recipe: Recipe):
        self.model, self.readings, self.wishes = model, readings, wishes
        self.points, self.values = readings.points, readings.values
        # A training of the user's own may compile anew, which replaces more than the optimiser.
        self.given = dict(vars(model))
        self.records = [(part, _copied(part)) for part in (model.train_state, model.losshistory)]
        self.net, self.bcs = model.net, model.data.bcs
        self.optimiser = Optimiser(model)
        self.first = {n: v.detach().clone() for n, v in wishes.unknowns.items()}
        self.weights = copy.deepcopy(model.net.state_dict())
        self.layers: tuple[HiddenLayer, ...] = ()
        if recipe.schedule is not None:
            self.layers = find_layers(self.net, self._inputs(self.points), _forward, wishes.layers)
            check_hidden(self.net, self.layers)

    def look(self) -> Snapshot:
        """Misfits and residuals of the model as it is now."""
        with evaluating(self.model.net):
            inputs, outputs = self._evaluate(self.points)
            misfits = self.readings.misfits(inputs, outputs)
            residuals = self._residuals(self.points)
            fresh = self._residuals(self._fresh_points())
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.sqrt(np.mean(fresh**2)))
        unknowns = {n: float(v.detach().reshape(())) for n, v in self.wishes.unknowns.items()}
        return Snapshot(misfits, residuals, size, unknowns)

    def prunable(self, retained: np.ndarray) -> TorchPrunable:
        """The network with its hidden layers."""
        places = self._inputs(self.points)
        return TorchPrunable(self.model.net, places, _forward, self.layers, retained)

    def layer_names(self) -> tuple[str, ...]:
        """The names of the hidden layers."""
        return tuple(layer.name for layer in self.layers)

    def adopt(self, smaller: TorchPrunable) -> str:
        """Put the smaller network into the model and tell its optimiser."""
        result = compacted(smaller)
        self.optimiser.follow(self.net, result.module)
        self.model.net = result.module
        return result.told

    def tune(self, partition: Partition, recipe: Recipe, later: bool) -> Status:
        """Weigh the observations and train on, by the model itself."""
        weight = partition.weight
        mean = self.readings.mean_weight(weight)
        own = {
            id(part.bc): weighted(part.bc, weight[part.rows], mean) for part in self.readings.sets
        }
        self.model.data.bcs = [own.get(id(bc), bc) for bc in self.bcs]
        if self.wishes.train is not None:
            self.wishes.train(self.model)
            return Status("finished", "fine-tuned by the function that was passed")
        with self.optimiser.at_most(self.wishes.iterations):
            self.model.train(
                iterations=self.wishes.iterations, disregard_previous_best=True,
                display_every=max(1, self.wishes.iterations), callbacks=self.wishes.callbacks,
                verbose=self.wishes.verbose,
            )  # fmt: skip
        name = self.model.opt_name if isinstance(self.model.opt_name, str) else "its optimiser"
        return Status("finished", f"the model trained on with {name}")

    def restore(self) -> None:
        """The model as it was given."""
        vars(self.model).update(self.given)
        for part, were in self.records:
            vars(part).update(were)
        self.model.data.bcs = self.bcs
        self.net.load_state_dict(self.weights)
        with torch.no_grad():
            for name, variable in self.wishes.unknowns.items():
                variable.copy_(self.first[name])
        self.optimiser.restore()

    def module(self) -> torch.nn.Module:
        """The network as it is now."""
        return self.model.net

    def _inputs(self, points: np.ndarray) -> torch.Tensor:
        parameter = next(self.model.net.parameters())
        return torch.as_tensor(points, dtype=dde.config.real(torch), device=parameter.device)

    def _evaluate(self, points: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs that carry gradients, and the network's outputs there."""
        data, net = self.model.data, self.model.net
        dde.grad.clear()
        if data.auxiliary_var_fn is not None:
            net.auxiliary_vars = self._inputs(data.auxiliary_var_fn(points))
        inputs = self._inputs(points).requires_grad_(True)
        return inputs, net(inputs)

    def _residuals(self, points: np.ndarray) -> np.ndarray:
        """The model's own equations at some points, (n, components)."""
        inputs, outputs = self._evaluate(points)
        pde = self.model.data.pde
        given = (outputs, self.model.net) if dde.config.autodiff == "forward" else outputs
        extra = (self.model.net.auxiliary_vars,) if utils.get_num_args(pde) == 3 else ()
        columns = residual_columns(pde(inputs, given, *extra), len(points))
        dde.grad.clear()
        return in_sizes(columns, self.wishes.sizes).detach().cpu().numpy().astype(np.float64)

    def _fresh_points(self) -> np.ndarray:
        """Points of the model's own domain at which nothing is enforced, the same every time."""
        state = np.random.get_state()
        np.random.seed(7_919)
        try:
            return self.model.data.geom.random_points(_FRESH_POINTS, random="pseudo")
        finally:
            np.random.set_state(state)


def _copied(record: Any) -> dict[str, Any]:
    """A record's entries, with lists that do not grow with it."""
    return {n: list(v) if isinstance(v, list) else v for n, v in vars(record).items()}


def _forward(net: torch.nn.Module, points: torch.Tensor) -> torch.Tensor:
    return net(points)


def check_model(model: Any) -> None:
    """A compiled model on the PyTorch backend that solves a differential equation."""
    backend = dde.backend.backend_name
    if backend != "pytorch":
        told = (
            "its networks are flax modules whose layers cannot be masked from outside"
            if backend == "jax"
            else "its networks cannot be reached from here"
        )
        raise UserError(
            f"DeepXDE runs on the backend {backend!r}, and {told}; train the model with "
            "DDE_BACKEND=pytorch to unlearn it"
        )
    if not isinstance(model, dde.Model):
        raise UserError(f"unlearn needs a deepxde.Model, not {type(model).__name__}")
    if model.opt is None:
        raise UserError("the model was not compiled; call model.compile and model.train first")
    integral = (dde.data.IDE, dde.data.FPDE)
    if not isinstance(model.data, dde.data.PDE) or isinstance(model.data, integral):
        raise UserError(
            f"the model's data is {type(model.data).__name__}; unlearning needs the residual at "
            "the readings, which only dde.data.PDE and dde.data.TimePDE give"
        )
    if model.data.pde is None:
        raise UserError("the model has no equation, so there is no residual to judge readings by")
