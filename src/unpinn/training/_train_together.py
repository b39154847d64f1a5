"""Train several models of one problem side by side, as one run."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpinn import precision
from unpinn._files import plain
from unpinn.network import Model
from unpinn.problem import Observations, Problem
from unpinn.training._fit import Fit
from unpinn.training._loop import Outcome, run
from unpinn.training._objective import Objective, make_data_term, make_objective
from unpinn.training._progress import Watcher, default_watcher
from unpinn.training._protocol import Protocol
from unpinn.training._records import Status
from unpinn.training._stages import Adam, Lbfgs, Stage
from unpinn.training._together import Together, member
from unpinn.training._train import _checkpoint, _groups, build_names, reading_units

_INTERVAL = 10.0


def train_together(
    problem: Problem,
    observations: Observations,
    protocol: Protocol,
    models: Model,
    seed: int = 0,
    *,
    directory: Any = None,
    watcher: Watcher | None = None,
    method: str = "ensemble",
) -> Fit:
    """Fit models that are stacked along a leading axis, all on the same readings and points.

    Arguments:
        problem: equations, conditions and unknowns.
        observations: the readings.
        protocol: how to train.
        models: where to start, from `stacked`.
        seed: of the collocation points and of everything random in the stages.
        directory: where the run keeps its checkpoint; a killed run found there is continued.
        watcher: is told how it goes.
        method: the name that the record carries.
    """
    count = len(next(iter(models.network.masks)).array)
    with precision.scope(precision.of(models)):
        first = member(models, 0)
    units = reading_units(first, observations) if protocol.scaled else None
    data = make_data_term(problem, observations, None, None, units)

    def build(stage: Stage) -> Objective:
        merged = {**protocol.weights, **stage.weights}
        return make_objective(problem, data, seed, merged).only(_groups(stage, data, problem))

    stages = (s for s in protocol.stages if isinstance(s, (Adam, Lbfgs)))
    outcome = run(
        tuple(Together(stage, count) for stage in stages),
        build,
        models,
        names=build_names(problem, data),
        seed=seed,
        watcher=watcher or default_watcher(),
        checkpoint=_checkpoint(
            directory, _INTERVAL, problem, observations, plain(protocol.to_dict()), seed, models
        ),
    )
    return _record(outcome, problem, observations, protocol, seed, method)


def _record(outcome: Outcome, problem, observations, protocol, seed, method) -> Fit:
    lost = any(note["diverged"] for note in outcome.notes)
    reason = "; ".join(f"{note['kind']}: {note['reason']}" for note in outcome.notes)
    # The end of the last state: what the members' terms were weighed with and divided by.
    *_, weights, scales = (np.asarray(leaf).tolist() for leaf in outcome.optimiser)
    details = {
        "scales": dict(zip(outcome.scales, scales, strict=True)),
        "weights": dict(zip(outcome.weights, weights, strict=True)),
    }
    with precision.scope(precision.of(outcome.model)):
        first = member(outcome.model, 0)
    return Fit(
        problem, observations, first, protocol, seed, outcome.history,
        Status("diverged" if lost else "finished", reason), outcome.seconds, method, protocol.name,
        members=outcome.model, details=details,
    )  # fmt: skip
