"""What is asked of networks once they stand: are their intervals right, what do they remember?

Answers are kept beside a run's record, in `afterwards.json`, and become part of it: a table asks
for them by quantities such as `intervals.laplace.coverage` or `forgetting.membership`. Only runs
whose weights are in the store can answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.evaluation import Membership
from unpinn.rivals import forgetting, intervals, judged, redrawn
from unpinn.runs import Posed
from unpinn.study._graph import Graph, Node
from unpinn.study._store import Store
from unpinn.training import Fit, Quiet

INTERVALS, FORGETTING = "intervals", "forgetting"
_LEVEL = 0.9
# Enough places for a coverage to a per cent.
_POINTS = 1_000
_REPLICAS = 8
# The draw of fresh readings must not be the readings' own.
_FRESH = 100_000
_RESAMPLING = ("bootstrap", "pruning")

Tell = Callable[[str], None]


def examine(graph: Graph, store: Store, tell: Tell = lambda line: None) -> int:
    """Answer what the tables ask of finished runs and is not answered yet; gives how many did.

    Arguments:
        graph: the runs and tables.
        store: where the runs are, and the answers are put.
        tell: is given a line for every run that answered.
    """
    answered = 0
    for address, asked in _questions(graph).items():
        known = store.afterwards(address)
        open_ = [question for question in asked if question not in known]
        if not open_ or not store.done(address) or not store.has_fit(address):
            continue
        found = _answers(graph, store, graph.nodes[address], open_)
        if found:
            store.publish_afterwards(address, {**known, **found})
            answered += 1
            tell(f"{graph.labels(address)}: {', '.join(found)}")
    return answered


def _questions(graph: Graph) -> dict[str, list[str]]:
    """For each run what is asked of it: "intervals.laplace", "forgetting"."""
    found: dict[str, dict[str, None]] = {}
    for cell, address in graph.cells:
        for quantity in cell.table.quantities:
            group, *rest = quantity.split(".")
            if group == INTERVALS and rest:
                found.setdefault(address, {})[f"{group}.{rest[0]}"] = None
            elif group == FORGETTING:
                found.setdefault(address, {})[group] = None
    return {address: list(asked) for address, asked in found.items()}


def _answers(graph: Graph, store: Store, node: Node, asked: list[str]) -> dict[str, Any]:
    posed = node.run.posed()
    if posed.benchmark is None or posed.readings is None:
        return {}
    fit = store.fit(node.address, posed.problem)
    if node.needs is not None and store.has_fit(node.needs):
        fit = replace(fit, before=store.fit(node.needs, posed.problem))
    found: dict[str, Any] = {}
    for question in asked:
        answer = (
            _forgotten(graph, store, node, fit, posed)
            if question == FORGETTING
            else _interval_quality(fit, posed, question.partition(".")[2])
        )
        if answer is not None:
            found[question] = answer
    return found


def _interval_quality(fit: Fit, posed: Posed, method: str) -> dict[str, Any] | None:
    """What 90 % intervals are worth; None where this kind of fit has none of that kind."""
    if (fit.members is None) == (method == "members"):
        return None
    if method == "pruning" and (fit.pruning is None or fit.before is None):
        return None
    options = {"replicas": _REPLICAS, "watcher": Quiet()} if method in _RESAMPLING else {}
    try:
        found = intervals(fit, method, _LEVEL, **options)
    except UserError as error:
        return {"reason": str(error)}
    bench = posed.benchmark
    assert bench is not None
    points = _some(bench.test_points())
    truth = bench.truth(points)
    # A pressure that is known up to a constant has no true value to be covered.
    names = dict.fromkeys(bench.state.of)
    if not bench.headline.shifted:
        names |= dict.fromkeys(bench.headline.of)
    fields = {name: truth[name] for name in names if name in truth}
    quality = judged(found, fit, points, fields, bench.true_scalars)
    numbers = quality.pop("unknowns", None)
    return {
        "level": _LEVEL,
        "coverage": float(np.mean([q.coverage for q in quality.values()])),
        "width_to_error": _mean([q.width_to_error for q in quality.values()]),
        "coverage_of_unknowns": None if numbers is None else numbers.coverage,
        "unknowns": {name: list(ends) for name, ends in found.unknowns.items()},
    }


def _forgotten(
    graph: Graph, store: Store, node: Node, fit: Fit, posed: Posed
) -> dict[str, Any] | None:
    """How far a fit is from the one that never saw the suspects."""
    retrained = _retrained(graph, store, node, posed)
    readings, bench = posed.readings, posed.benchmark
    if retrained is None or retrained.partition is None or not retrained.partition.suspect.any():
        return None
    assert readings is not None and bench is not None
    suspect = retrained.partition.suspect
    fresh = redrawn(
        posed.observations.take(suspect), readings.clean[suspect], readings.sigma_true[suspect],
        node.run.configuration.seed + _FRESH,
    )  # fmt: skip
    quality = forgetting(fit, retrained, _some(bench.test_points()), fresh)
    return {
        "distance": quality.predictions,
        "unknowns": quality.unknowns,
        "misfit_statistic": quality.misfits.statistic,
        "misfit_shift": quality.misfits.relative_wasserstein,
        "membership": _auc(quality.membership),
        "membership_retrained": _auc(quality.membership_retrained),
    }


def _retrained(graph: Graph, store: Store, node: Node, posed: Posed) -> Fit | None:
    """The fit that was trained anew without the suspects, from the same baseline."""
    baseline = node.needs or node.address
    for other in graph.nodes.values():
        if other.run.configuration.method == "rt" and other.needs == baseline:
            return store.fit(other.address, posed.problem) if store.has_fit(other.address) else None
    return None


def _auc(membership: Membership | None) -> float | None:
    return None if membership is None else membership.auc


def _some(points: np.ndarray) -> np.ndarray:
    """The same thousand of the points for everybody."""
    if len(points) <= _POINTS:
        return points
    return points[np.random.default_rng(0).choice(len(points), _POINTS, replace=False)]


def _mean(values: list[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None
