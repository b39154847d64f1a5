"""A compiled, trained DeepXDE model, as Algorithm 1 sees it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import deepxde as dde
import numpy as np
import torch
from deepxde import utils

from unpinn._errors import UserError
from unpinn.adapters._records import Snapshot
from unpinn.adapters._subject import takes_stiffness
from unpinn.adapters.deepxde._optimiser import Optimiser, at_most, follow
from unpinn.adapters.deepxde._readings import Readings, weighted
from unpinn.adapters.torch._checks import check_hidden, in_sizes, residual_columns
from unpinn.adapters.torch._compaction import compacted
from unpinn.adapters.torch._probe import evaluating
from unpinn.adapters.torch._prunable import TorchPrunable
from unpinn.adapters.torch._structure import HiddenLayer, find_layers
from unpinn.training import Partition, Status
from unpinn.unlearning import Recipe

# Of a model and, if it wants it, the factor `stiffness`.
Train = Callable[..., Any]

_FRESH_POINTS = 512


@dataclass(frozen=True, eq=False)
class Wishes:
    """What the user said about the model.

    Arguments:
        unknowns: the unknown numbers, by name.
        layers: names of the layers to prune.
        iterations: of each fine-tuning; as long as the recipe's stages where None.
        sizes: what each component of the residual is divided by.
        callbacks: of the fine-tuning.
        train: fine-tuning of the user's own.
        verbose: whether DeepXDE prints while it fine-tunes.
    """

    unknowns: Mapping[str, torch.Tensor]
    layers: Sequence[str] | None
    iterations: int | None
    sizes: tuple[float, ...]
    callbacks: Sequence[Any] | None
    train: Train | None
    verbose: int


@dataclass(frozen=True, eq=False)
class Kept:
    """A moment of a model.

    Arguments:
        parts: the model, its records and its data, each with its entries then.
        weights: of the network that it had.
        numbers: the unknown numbers with their values.
        optimiser: the optimiser that it had.
    """

    parts: list[tuple[Any, dict[str, Any]]]
    weights: dict[str, torch.Tensor]
    numbers: list[tuple[torch.Tensor, torch.Tensor]]
    optimiser: Optimiser


class DeepXDESubject:
    """A model with its network, conditions, unknowns and optimiser as they were and as they are."""

    def __init__(self, model: Any, readings: Readings, wishes: Wishes, recipe: Recipe):
        self.model, self.readings, self.wishes = model, readings, wishes
        self.points, self.values = readings.points, readings.values
        self.bcs = list(model.data.bcs)
        self.equations = 1
        self.given = self.keep()
        self.layers: tuple[HiddenLayer, ...] = ()
        if recipe.schedule is not None:
            self.layers = find_layers(model.net, self._inputs(self.points), _forward, wishes.layers)
            check_hidden(model.net, self.layers)

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
        follow(self.model.opt, self.model.net, result.module)
        self.model.net = result.module
        return result.told

    def tune(self, partition: Partition, recipe: Recipe, later: bool, stiffness: float) -> Status:
        """Weigh the observations and train on, by the model itself."""
        weight = partition.weight
        mean = self.readings.mean_weight(weight)
        own = {
            id(part.bc): weighted(part.bc, weight[part.rows], mean) for part in self.readings.sets
        }
        self.model.data.bcs = [own.get(id(bc), bc) for bc in self.bcs]
        if self.wishes.train is not None:
            more = {"stiffness": stiffness} if self.stiffens() else {}
            self.wishes.train(self.model, **more)
            return Status("finished", "fine-tuned by the function that was passed")
        length = self.wishes.iterations
        if length is None:
            stages = recipe.later if later and recipe.later is not None else recipe.stages
            length = sum(stage.length for stage in stages)
        with at_most(self.model, length), stiffer(self.model, self.equations, stiffness):
            self.model.train(
                iterations=length, disregard_previous_best=True, display_every=max(1, length),
                callbacks=self.wishes.callbacks, verbose=self.wishes.verbose,
            )  # fmt: skip
        name = self.model.opt_name if isinstance(self.model.opt_name, str) else "its optimiser"
        return Status("finished", f"the model trained on with {name}")

    def stiffens(self) -> bool:
        """`model.train` does, the user's own training where it has an argument for it."""
        return self.wishes.train is None or takes_stiffness(self.wishes.train)

    def keep(self) -> Kept:
        """The model with its network, conditions, unknowns, optimiser and records."""
        model = self.model
        parts = (model, model.train_state, model.losshistory, model.data)
        numbers = [*self.wishes.unknowns.values(), *model.external_trainable_variables]
        return Kept(
            [(part, _entries(part)) for part in parts],
            copy.deepcopy(model.net.state_dict()),
            [(number, number.detach().clone()) for number in numbers],
            Optimiser(model),
        )

    def bring_back(self, kept: Kept) -> None:
        """The model as it was then."""
        for part, entries in kept.parts:
            vars(part).update(_with_own_lists(entries))
        self.model.net.load_state_dict(kept.weights)
        with torch.no_grad():
            for number, value in kept.numbers:
                number.copy_(value)
        kept.optimiser.restore()

    def restore(self) -> None:
        """The model as it was given."""
        self.bring_back(self.given)

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
        found = pde(inputs, given, *extra)
        self.equations = len(found) if isinstance(found, (list, tuple)) else 1
        columns = residual_columns(found, len(points))
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


def _entries(part: Any) -> dict[str, Any]:
    return _with_own_lists(vars(part))


def _with_own_lists(entries: dict[str, Any]) -> dict[str, Any]:
    """An object's entries, with lists that do not grow with it."""
    return {n: list(v) if isinstance(v, list) else v for n, v in entries.items()}


@contextmanager
def stiffer(model: Any, equations: int, factor: float) -> Iterator[None]:
    """Let the equations count more for a while; the user's own weights stay in proportion.

    Arguments:
        model: whose losses are the equations' and then the conditions'.
        equations: how many of them are equations'.
        factor: by how much.
    """
    own = model.loss_weights
    if factor != 1.0:
        count = equations + len(model.data.bcs)
        weights = np.array(np.broadcast_to(1.0 if own is None else np.asarray(own), count), float)
        weights[:equations] *= factor
        model.loss_weights = weights.tolist()
    try:
        yield
    finally:
        model.loss_weights = own


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
