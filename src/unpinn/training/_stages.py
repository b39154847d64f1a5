"""The ways to lower a loss: Adam and L-BFGS, each a description and a compiled step.

A stage is plain configuration. Its two verbs are pure: `start` gives the state (arrays only, so a
checkpoint is the state), `advance` runs some epochs inside one compiled loop. The number of epochs
is a traced argument, so how a run is cut into pieces neither recompiles nor changes a bit of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Union

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from unpinn import precision as precision_of
from unpinn._errors import UserError
from unpinn.network import Hook, Model, split
from unpinn.training import _lbfgs
from unpinn.training._dropout import Noise
from unpinn.training._minibatch import batches_an_epoch, take_batch
from unpinn.training._objective import Objective

if TYPE_CHECKING:
    import unpinn.training._together

GROUPS = ("data", "equations", "conditions")
# Rows of history one compiled call can give back.
LENGTH = 500


class AdamState(NamedTuple):
    """What Adam needs to go on."""

    x: jax.Array
    optimiser: Any
    epoch: jax.Array


@dataclass(frozen=True)
class Adam:
    """Adam, full batch or in mini-batches.

    Arguments:
        epochs: passes over the readings.
        rate: the learning rate.
        schedule: "constant", or "cosine" down to a hundredth of the rate.
        groups: which terms are trained on.
        weights: changes the weights of terms in this stage, by term or group.
        balance: set the weights once, at the start of the stage, from the gradients' norms.
        rescale: divide every equation by its size: "measured" for the fields as they are when the
            stage starts, or a "reference" size from the domain and units alone.
        batch: readings a step; all unless told.
        decay: decoupled weight decay.
        dropout: the dropout rate after each hidden layer; every epoch has new masks.
        betas: how long the first and second moments are remembered.
        precision: "float32" or "float64".
    """

    kind: ClassVar[str] = "adam"
    epochs: int = 20_000
    rate: float = 1e-3
    schedule: Literal["constant", "cosine"] = "constant"
    groups: tuple[str, ...] = GROUPS
    weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    balance: bool = False
    rescale: Literal["measured", "reference"] | None = None
    batch: int | None = None
    decay: float = 0.0
    dropout: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    precision: str = "float32"

    def __post_init__(self):
        _check_stage(self, self.epochs)
        if not self.rate > 0:
            raise UserError(f"Adam needs a rate above zero, not {self.rate}")
        if self.schedule not in ("constant", "cosine"):
            raise UserError(f"schedule {self.schedule!r} is not 'constant' or 'cosine'")
        if self.batch is not None and self.batch < 1:
            raise UserError(f"a batch needs 1 reading or more, not {self.batch}")

    @property
    def length(self) -> int:
        """How many epochs there are."""
        return self.epochs

    def scaled_to(self, fraction: float) -> Adam:
        """With a fraction of the epochs."""
        return replace(self, epochs=max(1, round(self.epochs * fraction)))

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch."""
        return float(_rate(self.schedule, self.rate, self.epochs, epoch))

    def optimiser(self):
        """The Optax transformation at unit rate; the schedule multiplies what it gives."""
        import optax

        first, second = self.betas
        if self.decay:
            return optax.adamw(1.0, first, second, weight_decay=self.decay)
        return optax.adam(1.0, first, second)

    def start(self, objective: Objective, model: Model, key: jax.Array) -> AdamState:
        """The state before the first epoch."""
        x = flatten(model)
        return AdamState(x, self.optimiser().init(x), jnp.zeros((), jnp.int32))

    def advance(self, objective: Objective, model: Model, state: AdamState, count: int, key):
        """Run `count` epochs; gives the state, the history's rows, and why it stopped, if so."""
        count = min(count, LENGTH)
        state, rows = adam_epochs(*self.traced(), objective, model, state, jnp.asarray(count), key)
        # Cut on the host: on the device every other length would be another program.
        return state, np.asarray(rows)[:count], None

    def traced(self) -> tuple[tuple, jax.Array, jax.Array]:
        """What decides the compiled program, then the length and rate that do not."""
        number = lambda value: jnp.asarray(float(value), jnp.float32)  # noqa: E731
        return _key_of(self), number(self.epochs), number(self.rate)

    def model(self, model: Model, state: AdamState) -> Model:
        """The model of a state."""
        return rebuild(model, state.x)

    def done(self, state: AdamState) -> int:
        """Epochs behind a state."""
        return int(state.epoch)


@dataclass(frozen=True)
class Lbfgs:
    """L-BFGS with a strong-Wolfe line search; in float32 it stalls, so float64 is the default.

    Arguments:
        iterations: at most so many.
        history: remembered pairs.
        tolerance: stop when no gradient component is larger.
        groups: which terms are trained on.
        weights: changes the weights of terms in this stage.
        balance: set the weights once, at the start of the stage, from the gradients' norms.
        rescale: divide every equation by its size: "measured" for the fields as they are when the
            stage starts, or a "reference" size from the domain and units alone.
        precision: "float32" or "float64".
        dropout: the dropout rate; a line search needs the same loss at every trial, so the masks,
            one a point, are drawn once a stage.
    """

    kind: ClassVar[str] = "lbfgs"
    iterations: int = 5_000
    history: int = 50
    tolerance: float = 1e-8
    groups: tuple[str, ...] = GROUPS
    weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    balance: bool = False
    rescale: Literal["measured", "reference"] | None = None
    precision: str = "float64"
    dropout: float = 0.0

    def __post_init__(self):
        _check_stage(self, self.iterations)
        if self.history < 1:
            raise UserError(f"L-BFGS needs a history of 1 pair or more, not {self.history}")

    @property
    def length(self) -> int:
        """How many iterations there are at most."""
        return self.iterations

    def scaled_to(self, fraction: float) -> Lbfgs:
        """With a fraction of the iterations."""
        return replace(self, iterations=max(1, round(self.iterations * fraction)))

    def rate_at(self, epoch: int) -> float:
        """A line search has no rate; 1 is its first trial."""
        return 1.0

    def start(self, objective: Objective, model: Model, key: jax.Array) -> _lbfgs.LbfgsState:
        """The state before the first iteration."""
        return _lbfgs_start(_key_of(self), objective, model, key)

    def advance(self, objective: Objective, model: Model, state, count: int, key):
        """Run up to `count` iterations."""
        before = int(state.iteration)
        count = min(count, LENGTH)
        state, rows = _lbfgs_advance(
            _key_of(self), objective, model, state, jnp.asarray(count), key
        )
        status = int(state.status)
        reason = None if status == _lbfgs.RUNNING else _lbfgs.REASONS[status]
        return state, np.asarray(rows)[: int(state.iteration) - before], reason

    def model(self, model: Model, state) -> Model:
        """The model of a state."""
        return rebuild(model, state.x)

    def done(self, state) -> int:
        """Iterations behind a state."""
        return int(state.iteration)


# A forward reference, since the third builds on the other two.
Stage = Union[Adam, Lbfgs, "unpinn.training._together.Together"]


def flatten(model: Model) -> jax.Array:
    """Everything that is trained, as one vector."""
    return ravel_pytree(split(model)[0])[0]


def rebuild(model: Model, x: jax.Array) -> Model:
    """The model with its trained numbers taken from a vector (in the vector's precision)."""
    trained, rest = split(model)
    return eqx.combine(ravel_pytree(trained)[1](x), rest, is_leaf=lambda n: n is None)


def record_names(objective: Objective, model: Model) -> tuple[str, ...]:
    """What the columns of a history's rows are: the total, the terms, the unknown numbers."""
    return ("total", *objective.names, *(scalar.name for scalar in model.transforms))


def loss(x: jax.Array, objective: Objective, model: Model, hook: Hook | None = None):
    """The loss of a vector, and the row that the history keeps of it."""
    current = rebuild(model, x)
    total, terms = objective(current, hook)
    numbers = [jnp.asarray(v, x.dtype) for v in current.unknowns().values()]
    row = jnp.concatenate([total[None], terms, *(v[None] for v in numbers)])
    return total, jax.lax.stop_gradient(row)


def _rate(schedule: str, rate, epochs, step):
    if schedule == "constant":
        return rate
    share = jnp.minimum(step / jnp.maximum(epochs, 1), 1.0)
    return rate * (0.01 + 0.99 * 0.5 * (1 + jnp.cos(jnp.pi * share)))


def _key_of(stage: Adam | Lbfgs) -> tuple:
    """What of a stage decides the compiled program; lengths, rates and weights are traced."""
    plain = replace(stage, weights={}, balance=False, rescale=None, groups=GROUPS)
    if isinstance(plain, Adam):
        return (replace(plain, epochs=0, rate=1.0),)
    return (replace(plain, iterations=0),)


@eqx.filter_jit
def adam_epochs(
    stage_key: tuple, length, rate, objective: Objective, model: Model, state: AdamState, count, key
):
    """Run `count` epochs; gives the state and the rows of history, NaN beyond them."""
    (stage,) = stage_key
    optimiser = stage.optimiser()
    noise = Noise(stage.dropout)
    gradient_of = jax.value_and_grad(loss, has_aux=True)

    def step(x, opt_state, objective, key, rate):
        (_, row), gradient = gradient_of(x, objective, model, noise.hook(key))
        updates, opt_state = optimiser.update(gradient, opt_state, x)
        return x + rate * updates, opt_state, row

    def epoch(number, carry):
        (x, opt_state, done), rows = carry
        key_epoch = jax.random.fold_in(key, done)
        rate_now = jnp.asarray(_rate(stage.schedule, rate, length, done), x.dtype)
        if stage.batch is None:
            x, opt_state, row = step(x, opt_state, objective, key_epoch, rate_now)
        else:
            sweep = partial(_sweep, stage.batch, step, objective, key_epoch, rate_now)
            x, opt_state, row = sweep(x, opt_state)
        return AdamState(x, opt_state, done + 1), rows.at[number].set(row)

    width = jax.eval_shape(lambda x: loss(x, objective, model)[1], state.x).shape[0]
    rows = jnp.full((LENGTH, width), jnp.nan, state.x.dtype)
    return lax.fori_loop(0, count, epoch, (state, rows))


def _sweep(batch: int, step, objective: Objective, key, rate, x, opt_state):
    """One pass over the readings in mini-batches; the row is the mean over its steps."""

    def body(carry, number):
        part = take_batch(objective, batch, key, number)
        x, opt_state, row = step(*carry, part, jax.random.fold_in(key, number), rate)
        return (x, opt_state), row

    (x, opt_state), rows = lax.scan(
        body, (x, opt_state), jnp.arange(batches_an_epoch(objective, batch))
    )
    return x, opt_state, rows.mean(axis=0)


@eqx.filter_jit
def _lbfgs_start(stage_key: tuple, objective: Objective, model: Model, key):
    (stage,) = stage_key
    hook = Noise(stage.dropout).hook(key)
    evaluate = _value_and_gradient(objective, model, hook)
    return _lbfgs.initialise(evaluate, flatten(model), stage.history)


@eqx.filter_jit
def _lbfgs_advance(stage_key: tuple, objective: Objective, model: Model, state, count, key):
    (stage,) = stage_key
    hook = Noise(stage.dropout).hook(key)
    state, record = _lbfgs.advance(
        _value_and_gradient(objective, model, hook), state, count,
        length=LENGTH, gradient_tolerance=stage.tolerance,
    )  # fmt: skip
    return state, record.terms


def _value_and_gradient(objective: Objective, model: Model, hook: Hook | None = None):
    gradient_of = jax.value_and_grad(loss, has_aux=True)
    return lambda x: gradient_of(x, objective, model, hook)


def _check_stage(stage: Adam | Lbfgs, length: int) -> None:
    precision_of.check(stage.precision)
    if not 0 <= stage.dropout < 1:
        raise UserError(f"dropout must be in [0, 1), not {stage.dropout}")
    if not isinstance(length, int) or length < 0:
        raise UserError(f"a stage needs a whole number of epochs, zero or more, not {length!r}")
    if stage.rescale not in (None, "measured", "reference"):
        raise UserError(f"rescale must be 'measured', 'reference' or None, not {stage.rescale!r}")
    unknown = [group for group in stage.groups if group not in GROUPS]
    if unknown or not stage.groups:
        raise UserError(f"a stage's groups must be among {GROUPS}, not {stage.groups}")
