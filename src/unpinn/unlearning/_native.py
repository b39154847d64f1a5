"""This package's own models, as pruning and partition see them."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn._errors import UserError
from unpinn.network import Model
from unpinn.training import Fit
from unpinn.unlearning._scores import Scores


def scores_of(fit: Fit, residual_weight: float = 0.001) -> Scores:
    """A fit's misfits and residuals at its readings.

    With non-dimensional training the residuals are divided by the equations' sizes; misfits are in
    the readings' own units, as the paper has them.
    """
    if fit.observations is None:
        raise UserError("this fit has no readings to score")
    misfits = fit.misfits()
    residuals = fit.residual(fit.observations.points)
    if fit.protocol.scaled:
        sizes = fit.details.get("scales", {})
        columns = [
            np.full(e.components, sizes.get(e.name, 1.0)) for e in fit.problem.equation_expressions
        ]
        residuals = residuals / np.concatenate(columns)
    return Scores(misfits, residuals, residual_weight)


@dataclass(frozen=True, eq=False)
class NativePrunable:
    """A model and the readings' points; `remove` gives a new one."""

    model: Model
    points: np.ndarray

    def activations(self) -> list[np.ndarray]:
        """Activations after the nonlinearity at all readings."""
        kind = precision.of(self.model)
        with precision.scope(kind):
            layers = _activations(self.model, jnp.asarray(self.points, np.dtype(kind)))
            return [np.asarray(layer, np.float64) for layer in layers]

    def alive(self) -> list[np.ndarray]:
        """The masks."""
        return [np.asarray(mask.array) > 0 for mask in self.model.network.masks]

    def norms(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """Norms of incoming and outgoing weights."""
        outgoing = np.linalg.norm(np.asarray(self.model.network.following(layer).weight), axis=0)
        return self.model.network.incoming_norms(layer), outgoing

    def remove(self, layer: int, neurons: np.ndarray, constants: np.ndarray) -> NativePrunable:
        """Mask neurons and fold their constants into the next layer."""
        with precision.scope(precision.of(self.model)):
            network = self.model.network
            if np.any(constants):
                network = network.fold(layer, constants)
            masks = [np.array(mask.array) for mask in network.masks]
            masks[layer][neurons] = 0.0
            network = network.with_masks(masks)
            model = eqx.tree_at(lambda m: m.network, self.model, network)
        return NativePrunable(model, self.points)


def compacted(model: Model) -> Model:
    """The model without its masked neurons; equal to rounding, and faster."""
    with precision.scope(precision.of(model)):
        return eqx.tree_at(lambda m: m.network, model, model.network.compact())


@eqx.filter_jit
def _activations(model: Model, points: jax.Array) -> list[jax.Array]:
    return model.network.activations(model.inputs(points))
