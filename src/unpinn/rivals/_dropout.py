"""dpinn: dropout in every epoch, and the mean of many thinned networks at inference."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax

from unpinn import precision
from unpinn.network import Model
from unpinn.rivals import _checks as checks
from unpinn.rivals._method import Method, Task, register
from unpinn.training import Adam, Fit, Lbfgs, Protocol, Stage, train

_PASSES_STREAM = 50


def _run(task: Task) -> Fit:
    rate = checks.share(task, "dpinn", "rate")
    passes = checks.whole(task, "dpinn", "passes", 1)
    redraw = checks.whole(task, "dpinn", "redraw", 1)
    protocol = with_dropout(task.protocol, rate, redraw)
    fit = train(
        task.problem, task.observations, protocol, task.seed,
        directory=task.place("dropout"), watcher=task.watcher,
    )  # fmt: skip
    with precision.scope(fit.precision):
        key = jax.random.fold_in(jax.random.key(task.seed), _PASSES_STREAM)
        members = thinned(fit.model, rate, passes, key)
    return replace(fit, members=members).with_details(rate=rate, passes=passes, redraw=redraw)


def with_dropout(protocol: Protocol, rate: float, redraw: int) -> Protocol:
    """A protocol in which every stage drops neurons.

    Adam meets new masks at every epoch. A line search needs the same loss at every trial, so a
    stage of L-BFGS becomes legs of `redraw` iterations, each with masks of its own, a mask a
    point: a quasi-Newton method on a sample of masks that is renewed before it is memorised.

    >>> stages = with_dropout(Protocol((Lbfgs(250),)), 0.1, 100).stages
    >>> [(stage.iterations, stage.dropout) for stage in stages]
    [(100, 0.1), (100, 0.1), (50, 0.1)]
    """
    stages: list[Stage] = []
    for stage in protocol.stages:
        if isinstance(stage, Lbfgs):
            starts = range(0, stage.iterations, redraw)
            legs = (min(redraw, stage.iterations - start) for start in starts)
            stages += [replace(stage, iterations=length, dropout=rate) for length in legs]
        elif isinstance(stage, Adam):
            stages.append(replace(stage, dropout=rate))
    return replace(protocol, stages=tuple(stages))


def thinned(model: Model, rate: float, passes: int, key: jax.Array) -> Model:
    """Networks with neurons dropped by chance, stacked: each one mask for the whole domain.

    At every point the values are distributed as in training, and each network's fields are
    smooth, with derivatives that are its own.
    """
    masks = [mask.array for mask in model.network.masks]

    def one(key: jax.Array) -> Model:
        keys = jax.random.split(key, len(masks))
        drawn = [
            mask * jax.random.bernoulli(k, 1 - rate, mask.shape) / (1 - rate)
            for k, mask in zip(keys, masks, strict=True)
        ]
        return eqx.tree_at(lambda m: m.network, model, model.network.with_masks(drawn))

    return eqx.filter_vmap(one)(jax.random.split(key, passes))


DROPOUT = register(
    Method(
        "dpinn",
        "dropout after each hidden layer; the mean over stochastic passes",
        _run,
        options={"rate": 0.1, "passes": 50, "redraw": 100},
    )
)
