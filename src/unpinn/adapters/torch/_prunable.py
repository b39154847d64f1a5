"""A PyTorch module as pruning sees it."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch

from unpinn._errors import UserError
from unpinn.adapters.torch._masks import mask_of, silence
from unpinn.adapters.torch._probe import Forward, run
from unpinn.adapters.torch._structure import HiddenLayer, Part


@dataclass(frozen=True, eq=False)
class TorchPrunable:
    """A module and the readings' points; `remove` gives a new one.

    A neuron's activation is what the layers that read it get. Where there are several (a residual
    stream), it is their mean, and each takes over its own mean when the neuron goes.

    Arguments:
        module: the network.
        points: where the readings are, (N, dimensions).
        forward: how the network is evaluated.
        layers: its hidden layers.
        retained: which readings are retained, (N,) of bool.
    """

    module: torch.nn.Module
    points: torch.Tensor
    forward: Forward
    layers: tuple[HiddenLayer, ...]
    retained: np.ndarray

    def activations(self) -> list[np.ndarray]:
        """Activations after the nonlinearity at all readings."""
        return [np.mean(self._readings(layer), axis=0) for layer in self.layers]

    def alive(self) -> list[np.ndarray]:
        """Which neurons are still read."""
        return [
            mask_of(self._layer(layer.reads[0]))[layer.reads[0].places] for layer in self.layers
        ]

    def norms(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """Norms of incoming and outgoing weights."""
        hidden = self.layers[layer]
        rows = [_weight(self._layer(part))[part.places] for part in hidden.writes]
        columns = [_weight(self._layer(part)).T[part.places] for part in hidden.reads]
        return _norms(rows), _norms(columns)

    def remove(self, layer: int, neurons: np.ndarray, constants: np.ndarray) -> TorchPrunable:
        """Mask neurons and fold their constants into the biases of what reads them."""
        hidden = self.layers[layer]
        module = copy.deepcopy(self.module)
        own = [np.asarray(constants)[neurons]] * len(hidden.reads)
        if len(hidden.reads) > 1 and np.any(constants):
            readings = self._readings(hidden)
            own = [seen[self.retained].mean(axis=0)[neurons] for seen in readings]
        for part, values in zip(hidden.reads, own, strict=True):
            silence(module.get_submodule(part.layer), part.places[neurons], values)  # type: ignore[arg-type]
        return TorchPrunable(module, self.points, self.forward, self.layers, self.retained)

    def _layer(self, part: Part) -> torch.nn.Linear:
        return self.module.get_submodule(part.layer)  # type: ignore[return-value]

    def _readings(self, hidden: HiddenLayer) -> list[np.ndarray]:
        """What each reading layer gets of the neurons, (N, neurons) each."""
        seen = self._seen
        out = []
        for part in hidden.reads:
            calls = [self._per_reading(part.layer, rows) for rows in seen[part.layer]]
            alive = mask_of(self._layer(part))
            out.append((np.mean(calls, axis=0) * alive)[:, part.places])
        return out

    @property
    def _seen(self) -> dict[str, list[torch.Tensor]]:
        # One pass serves all layers; the record is frozen, so its answer cannot change.
        if "_pass" not in self.__dict__:
            inputs = run(self.module, self.points, self.forward).inputs
            object.__setattr__(self, "_pass", inputs)
        return self.__dict__["_pass"]

    def _per_reading(self, name: str, rows: torch.Tensor) -> np.ndarray:
        """One row a reading, where a module evaluates several points for each."""
        count = len(self.points)
        if len(rows) % count:
            raise UserError(
                f"the layer {name!r} sees {len(rows)} rows for {count} readings, so its neurons "
                "cannot be judged reading by reading; leave it out by naming layers"
            )
        values = rows.cpu().numpy().astype(np.float64)
        return values.reshape(count, -1, values.shape[1]).mean(axis=1)


def _weight(layer: torch.nn.Linear) -> np.ndarray:
    return layer.weight.detach().cpu().numpy().astype(np.float64)


def _norms(blocks: list[np.ndarray]) -> np.ndarray:
    """The norm of each neuron's weights in all layers together."""
    return np.sqrt(sum((block**2).sum(axis=1) for block in blocks))
