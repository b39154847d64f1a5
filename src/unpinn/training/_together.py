"""Several networks through one stage at a time: the members of an ensemble, under one loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn.network import Model
from unpinn.training._balance import balanced_weights
from unpinn.training._objective import Objective
from unpinn.training._scales import (
    measured_scales,
    reference_scales,
    used_scales,
    with_scales,
)
from unpinn.training._stages import LENGTH, Adam, Lbfgs, adam_epochs, rebuild


class TogetherState(NamedTuple):
    """The members' states with a leading axis, and how the shared loss is weighed."""

    inner: Any
    weights: jax.Array
    scales: jax.Array

    @property
    def x(self) -> jax.Array:
        """Everything that is trained, (members, numbers)."""
        return self.inner.x


@dataclass(frozen=True)
class Together:
    """A stage for models that are stacked along a leading axis.

    Epochs of Adam run under `vmap`, so that the members' small matrix products become large ones.
    L-BFGS runs a member after another: line searches take different turns, and under `vmap` every
    member would pay for the longest. Weights and scales that the stage asks for are taken from the
    first member, so that all are trained on one loss; rows of history are means.

    Arguments:
        stage: the stage.
        members: how many models there are.
    """

    stage: Adam | Lbfgs
    members: int
    # What the loop would take from one model is taken here from the first member.
    balance: bool = False
    rescale: None = None

    @property
    def kind(self) -> str:
        """The stage's."""
        return self.stage.kind

    @property
    def precision(self) -> str:
        """The stage's."""
        return self.stage.precision

    @property
    def groups(self) -> tuple[str, ...]:
        """The stage's."""
        return self.stage.groups

    @property
    def weights(self) -> Mapping[str, float]:
        """The stage's."""
        return self.stage.weights

    @property
    def length(self) -> int:
        """The stage's."""
        return self.stage.length

    def scaled_to(self, fraction: float) -> Together:
        """With a fraction of the stage's length."""
        return Together(self.stage.scaled_to(fraction), self.members)

    def rate_at(self, epoch: int) -> float:
        """The stage's."""
        return self.stage.rate_at(epoch)

    def start(self, objective: Objective, model: Model, key: jax.Array) -> TogetherState:
        """The state before the first epoch."""
        first, kind = member(model, 0), objective.weights.dtype
        if self.stage.rescale is not None:
            size = {"measured": measured_scales, "reference": reference_scales}
            objective = with_scales(objective, size[self.stage.rescale](objective, first))
        if self.stage.balance:
            objective = objective.weighted(jnp.asarray(balanced_weights(objective, first), kind))
        states = [
            self.stage.start(objective, member(model, k), jax.random.fold_in(key, k))
            for k in range(self.members)
        ]
        scales = jnp.asarray([*used_scales(objective).values()], kind)
        return TogetherState(stacked(states), jnp.asarray(objective.weights), scales)

    def advance(self, objective: Objective, model: Model, state: TogetherState, count: int, key):
        """Run `count` epochs of every member."""
        names = [*used_scales(objective)]
        scales = dict(zip(names, np.asarray(state.scales).tolist(), strict=True))
        objective = with_scales(objective, scales).weighted(state.weights)
        keys = jnp.stack([jax.random.fold_in(key, k) for k in range(self.members)])
        arguments = (objective, model, state.inner, count, keys)
        if isinstance(self.stage, Adam):
            inner, rows, reason = _adam_together(self.stage, *arguments)
        else:
            inner, rows, reason = _lbfgs_in_turn(self.stage, *arguments)
        return state._replace(inner=inner), rows, reason

    def model(self, model: Model, state: TogetherState) -> Model:
        """The models of a state."""
        return eqx.filter_vmap(rebuild)(model, state.x)

    def done(self, state: TogetherState) -> int:
        """Epochs behind the member that went furthest."""
        return max(self.stage.done(member(state.inner, k)) for k in range(self.members))


def stacked(parts: Sequence[Any]) -> Any:
    """Trees of one structure as one, with a leading axis."""
    return jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *parts)


def member(stack: Any, number: int) -> Any:
    """One of the trees that were stacked."""
    return jax.tree_util.tree_map(lambda leaf: leaf[number], stack)


def _adam_together(stage: Adam, objective: Objective, models: Model, states, count: int, keys):
    count = min(count, LENGTH)
    states, rows = _adam_epochs_together(
        *stage.traced(), objective, models, states, jnp.asarray(count), keys
    )
    return states, rows.mean(axis=0)[:count], None


@eqx.filter_jit
def _adam_epochs_together(stage_key, length, rate, objective, models, states, count, keys):
    def one(model, state, key):
        return adam_epochs(stage_key, length, rate, objective, model, state, count, key)

    return eqx.filter_vmap(one)(models, states, keys)


def _lbfgs_in_turn(stage: Lbfgs, objective: Objective, models: Model, states, count: int, keys):
    found = [
        stage.advance(objective, member(models, k), member(states, k), count, keys[k])
        for k in range(len(keys))
    ]
    states = stacked([state for state, _, _ in found])
    parts = [np.asarray(rows) for _, rows, _ in found]
    reasons = [reason for _, _, reason in found]
    reason = None if None in reasons else "; ".join(dict.fromkeys(reasons))
    return states, _mean_rows(parts), reason


def _mean_rows(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The mean over members; one that stopped earlier is left out of the later rows."""
    longest = max(len(part) for part in parts)
    rows = np.ma.masked_all((len(parts), longest, parts[0].shape[1]))
    for number, part in enumerate(parts):
        rows[number, : len(part)] = part
    return np.asarray(rows.mean(axis=0).filled(np.nan))
