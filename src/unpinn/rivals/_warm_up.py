"""A short plain training that shows how large the readings' errors are, out of the same budget.

Losses that need a scale take it from here: the first tenth of the protocol's epochs is spent on
least squares, which has not memorised the readings yet; its misfits tell the scale, and training
goes on from there with the other loss for the rest of the epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn.network import Model
from unpinn.rivals._method import Task
from unpinn.rivals._working import spread_of_readings, units_of, working_misfits
from unpinn.training import Adam, Fit, Lbfgs, Penalty, Protocol, Stage, train

SHARE = 0.1
# No reading is taken to be better than this share of the readings' spread.
FLOOR = 1e-3


@dataclass(frozen=True, eq=False)
class WarmUp:
    """Where a loss with a scale starts from.

    Arguments:
        fit: the short plain training.
        rest: what is left of the protocol.
        misfits: in working units, (N, quantities), NaN where missing.
        units: what a working unit of each quantity is.
        floor: the smallest level of errors to believe in, in working units.
    """

    fit: Fit
    rest: Protocol
    misfits: np.ndarray
    units: np.ndarray
    floor: float

    def natural(self, level: float) -> dict[str, float]:
        """A level of errors in the user's unit of each quantity."""
        assert self.fit.observations is not None
        names = self.fit.observations.quantities
        return {n: float(level * unit) for n, unit in zip(names, self.units, strict=True)}


def warm_up(task: Task, extra_columns: tuple[str, ...] = ()) -> WarmUp:
    """Spend the first tenth of the budget on least squares."""
    head, rest = split_protocol(task.protocol, SHARE)
    name = "warm-up-wide" if extra_columns else "warm-up"
    fit = train(
        task.problem, task.observations, head, task.seed, extra_columns=extra_columns,
        directory=task.place(name), watcher=task.watcher,
    )  # fmt: skip
    units = units_of(fit)
    floor = FLOOR * spread_of_readings(task.observations, units)
    return WarmUp(fit, rest, working_misfits(fit), units, floor)


def go_on(
    task: Task, start: WarmUp, penalty: Penalty, extras: Mapping[str, float] | None = None
) -> Fit:
    """Spend the rest of the budget on another loss, with trained numbers of its own."""
    model = with_extras(start.fit.model, extras or {})
    fit = train(
        task.problem, task.observations, start.rest, task.seed, penalty=penalty, start=model,
        directory=task.place(penalty.name), watcher=task.watcher,
    )  # fmt: skip
    spent = start.fit.seconds["total"]
    return replace(
        fit,
        protocol=task.protocol,
        recipe=task.protocol.name,
        history=start.fit.history.joined(fit.history),
        seconds={**fit.seconds, "warm_up": spent, "total": spent + fit.seconds["total"]},
    )


def split_protocol(protocol: Protocol, share: float) -> tuple[Protocol, Protocol]:
    """The first share of a protocol's epochs, at a constant rate, and the others.

    >>> head, rest = split_protocol(Protocol((Adam(100), Lbfgs(100))), 0.1)
    >>> [stage.length for stage in head.stages], [stage.length for stage in rest.stages]
    ([20], [80, 100])
    """
    left = max(1, round(share * protocol.epochs))
    head: list[Stage] = []
    rest: list[Stage] = []
    for stage in protocol.stages:
        # At least one epoch has to be left for the loss that is prepared.
        taken = min(left, stage.length if stage is not protocol.stages[-1] else stage.length - 1)
        left -= taken
        if taken > 0:
            head.append(_of_length(stage, taken, constant=True))
        if taken < stage.length:
            rest.append(_of_length(stage, stage.length - taken))
    return replace(protocol, stages=tuple(head or rest)), replace(protocol, stages=tuple(rest))


def with_extras(model: Model, extras: Mapping[str, float]) -> Model:
    """A model with further trained numbers."""
    with precision.scope(kind := precision.of(model)):
        trained = {name: jnp.asarray(value, np.dtype(kind)) for name, value in extras.items()}
        return Model(
            model.network, model.scalars, {**model.extras, **trained}, model.layout,
            model.transforms,
        )  # fmt: skip


def _of_length(stage: Stage, length: int, constant: bool = False) -> Stage:
    if isinstance(stage, Lbfgs):
        return replace(stage, iterations=length)
    assert isinstance(stage, Adam)
    return replace(stage, epochs=length, schedule="constant" if constant else stage.schedule)
