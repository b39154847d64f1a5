"""Train a problem's network on readings: the package's first verb."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from unpinn import precision
from unpinn._errors import UserError
from unpinn._files import plain
from unpinn.network import Model, make_model
from unpinn.problem import Observations, Problem
from unpinn.training._checkpoint import Checkpoint
from unpinn.training._fit import Fit
from unpinn.training._loop import Outcome, run
from unpinn.training._objective import Objective, make_data_term, make_objective
from unpinn.training._penalties import Penalty
from unpinn.training._programs import note
from unpinn.training._progress import Watcher, default_watcher
from unpinn.training._protocol import Protocol
from unpinn.training._recommended import recommended
from unpinn.training._records import Status
from unpinn.training._stages import Stage

# Single precision: its relative resolution, of which a domain must be a thousand times as wide,
# and what is so small or large that no more can be computed with it.
_RESOLUTION, _COARSEST = float(np.finfo(np.float32).eps), 1e-3
_TINY, _HUGE = 1e-30, 1e30


def train(
    problem: Problem,
    observations: Observations | None = None,
    protocol: Protocol | None = None,
    seed: int = 0,
    *,
    weights: Any = None,
    penalty: Penalty | None = None,
    start: Model | Fit | None = None,
    extras: Mapping[str, float] | None = None,
    extra_columns: tuple[str, ...] = (),
    scales: Mapping[str, float] | None = None,
    directory: Any = None,
    watcher: Watcher | None = None,
    method: str = "pinn",
    checkpoint_interval: float = 10.0,
) -> Fit:
    """Fit a network to a problem and its readings.

    Arguments:
        problem: equations, conditions and unknowns.
        observations: the readings; none for a forward problem.
        protocol: how to train; the recommended one unless told.
        seed: of the first weights, collocation points and mini-batches.
        weights: how much each reading counts, (N,); zero forgets one.
        penalty: what a misfit costs; its square unless told.
        start: a model to go on from, or a fit, whose optimiser state is then taken up too if the
            first stage is of the same kind.
        extras: trained numbers of the penalty and their first values.
        extra_columns: further outputs of the network that the penalty reads.
        scales: what equations and conditions are divided by, by name; 1 unless told.
        directory: where the run keeps its checkpoint; a killed run found there is continued.
        watcher: is told how it goes; a line on a terminal unless told.
        method: the name that the record carries.
        checkpoint_interval: seconds between checkpoints.
    """
    protocol = protocol or recommended(problem, observations)
    _check(problem, observations, weights, protocol)
    _check_range(problem, observations, protocol)
    note(problem)
    model = _first_model(problem, observations, protocol, seed, start, extras, extra_columns)
    data = None
    if observations is not None:
        units = reading_units(model, observations) if protocol.scaled else None
        data = make_data_term(problem, observations, weights, penalty, units)

    def build(stage: Stage) -> Objective:
        merged = {**protocol.weights, **stage.weights}
        return make_objective(problem, data, seed, merged, scales).only(
            _groups(stage, data, problem)
        )

    everything = build_names(problem, data)
    outcome = run(
        protocol.stages,
        build,
        model,
        names=everything,
        seed=seed,
        watcher=watcher or default_watcher(),
        checkpoint=_checkpoint(
            directory, checkpoint_interval, problem, observations, plain(protocol.to_dict()), seed,
            weights, repr(penalty), start, extras, extra_columns, scales,
        ),
        optimiser=_optimiser(start, protocol),
    )  # fmt: skip
    return _record(outcome, problem, observations, protocol, seed, method)


def build_names(problem: Problem, data: Any) -> tuple[str, ...]:
    """The columns of a history."""
    terms = [*problem.equations, *(c.name for c in problem.conditions)]
    numbers = [scalar.name for scalar in problem.scalars]
    return ("total", *(["data"] if data is not None else []), *terms, *numbers)


def _groups(stage: Stage, data: Any, problem: Problem) -> tuple[str, ...]:
    """A stage's groups that exist in this problem."""
    there = {"data": data is not None, "equations": True, "conditions": bool(problem.conditions)}
    return tuple(group for group in stage.groups if there[group])


def _check(problem, observations, weights, protocol: Protocol) -> None:
    if not isinstance(problem, Problem):
        raise UserError(f"train needs a Problem, not {type(problem).__name__}")
    if observations is not None and not isinstance(observations, Observations):
        raise UserError(
            f"train needs Observations (see unpinn.observe), not {type(observations).__name__}"
        )
    if observations is None:
        if weights is not None:
            raise UserError("weights of readings were passed without readings")
        if any(tuple(stage.groups) == ("data",) for stage in protocol.stages):
            raise UserError("a stage trains on the data alone, but there are no readings")
        return
    if weights is not None:
        array = np.asarray(weights, np.float64)
        if array.shape != (len(observations),) or not np.isfinite(array).all() or (array < 0).any():
            raise UserError(
                f"weights must be {len(observations)} finite numbers of zero or more, one a reading"
            )


def _check_range(problem: Problem, observations, protocol: Protocol) -> None:
    """Refuse numbers that single precision cannot hold, or cannot tell apart."""
    if all(stage.precision == "float64" for stage in protocol.stages):
        return
    for name, (low, high) in problem.coordinates.items():
        largest = max(abs(low), abs(high))
        if _RESOLUTION * largest > _COARSEST * (high - low) or not _TINY < high - low < _HUGE:
            raise UserError(
                f"coordinate {name!r} runs from {low:.12g} to {high:.12g}, which single precision "
                "does not resolve; count it from its start or in another unit, or train in float64"
            )
    if observations is None:
        return
    for name, column in zip(observations.quantities, observations.values.T, strict=True):
        largest = float(np.abs(column[np.isfinite(column)]).max(initial=0.0))
        if largest > _HUGE or 0 < largest < _TINY:
            raise UserError(
                f"the readings of {name!r} are as large as {largest:.3g}, which single precision "
                "cannot hold; state them in another unit, or train in float64"
            )


def _first_model(problem, observations, protocol, seed, start, extras, extra_columns) -> Model:
    if isinstance(start, Fit):
        return start.model
    if start is not None:
        return start
    with precision.scope("float32"):
        return make_model(
            problem, observations, protocol.architecture, seed, protocol.scaled,
            extra_columns, extras,
        )  # fmt: skip


def reading_units(model: Model, observations: Observations) -> np.ndarray:
    """One unit of each measured quantity: a field's own unit, a robust spread for others."""
    units = []
    for column, name in enumerate(observations.quantities):
        if name in model.layout.columns:
            units.append(model.layout.scale[model.layout.columns.index(name)])
            continue
        seen = observations.values[:, column]
        spread = float(np.quantile(np.abs(seen[np.isfinite(seen)]), 0.9))
        units.append(spread if spread > 0 else 1.0)
    return np.array(units)


def _optimiser(start: Any, protocol: Protocol):
    same = isinstance(start, Fit) and start.optimiser and start.protocol.stages[-1].kind == "adam"
    if same and protocol.stages[0].kind == "adam":
        return list(start.optimiser)
    return None


def _checkpoint(directory, interval: float, problem, observations, *parts: Any):
    """The checkpoint of a run; what tells this run from any other goes into its digest."""
    if directory is None:
        return None
    readings = None if observations is None else observations.fingerprint
    content = [problem.fingerprint, readings, *map(_content, parts)]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return Checkpoint(Path(directory) / "checkpoint.safetensors", digest, interval)


def _content(part: Any) -> Any:
    """Something in JSON's types that differs where the part does: arrays by a digest."""
    if isinstance(part, Fit):
        return [_content(part.model), _content(part.optimiser)]
    if isinstance(part, (Model, np.ndarray, list)) or (isinstance(part, tuple) and part):
        digest = hashlib.sha256()
        for leaf in jax.tree_util.tree_leaves(part):
            digest.update(np.asarray(leaf).tobytes())
        return digest.hexdigest()
    return plain(part)


def _record(outcome: Outcome, problem, observations, protocol, seed, method) -> Fit:
    lost = [note for note in outcome.notes if note["diverged"]]
    code = "diverged" if lost else "finished"
    reason = "; ".join(f"{note['kind']}: {note['reason']}" for note in outcome.notes)
    details: dict[str, Any] = {"scales": outcome.scales, "weights": outcome.weights}
    scaled = outcome.model.layout.scaled
    found = {
        s.name: float(np.asarray(s.natural(np.asarray(outcome.model.scalars[s.name]), scaled)))
        for s in problem.scalars
    }
    bounded = [s.name for s in problem.scalars if s.at_bound(found[s.name])]
    if bounded:
        details["at_bound"] = bounded
        reason += f"; {', '.join(bounded)} ended at a bound, so the bound decided the value"
    return Fit(
        problem, observations, outcome.model, protocol, seed, outcome.history,
        Status(code, reason), outcome.seconds, method, protocol.name,
        optimiser=tuple(outcome.optimiser), details=details,
    )  # fmt: skip
