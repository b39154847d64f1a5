"""The spread of an unlearned fit over what chance decided: which readings, which neurons.

Each replica starts at the fit (or at a pruning of its own) and repeats the fine-tuning, shortened,
on readings drawn with replacement from the retained ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.network import Model
from unpinn.rivals._laplace import trusted
from unpinn.rivals._uncertainty import Band, Uncertainty, around, ends, mean_and_deviation
from unpinn.training import Fit, Partition, Protocol, Watcher, train
from unpinn.unlearning import (
    Criterion,
    LayerView,
    NativePrunable,
    Schedule,
    compacted,
    criterion,
    prune,
)

_STREAM = 9_176


def bootstrap(
    fit: Fit,
    level: float = 0.9,
    replicas: int = 10,
    share: float = 0.5,
    seed: int = 0,
    directory: Any = None,
    watcher: Watcher | None = None,
) -> Uncertainty:
    """Intervals from the spread over resampled readings.

    Arguments:
        fit: an unlearned fit, or any other single model.
        level: of the intervals.
        replicas: how many times the readings are drawn.
        share: the length of a replica's training, as a share of the fit's own last training.
        seed: of the draws.
        directory: where checkpoints are kept; killed replicas found there are continued.
        watcher: is told how each replica goes.
    """
    _check("bootstrap", replicas, share)
    weight, _ = trusted(fit)
    plan = _Replicas(fit, fit.protocol.scaled_to(share), seed, directory, watcher)
    fits = [plan.train(k, fit.model, plan.resampled(weight, k)) for k in range(replicas)]
    return _spread("bootstrap", fit, fits, level, {"replicas": replicas, "share": share})


def pruning_ensemble(
    fit: Fit,
    level: float = 0.9,
    replicas: int = 10,
    share: float = 0.5,
    jitter: float = 0.5,
    schedule: Schedule | None = None,
    resample: bool = True,
    seed: int = 0,
    directory: Any = None,
    watcher: Watcher | None = None,
) -> Uncertainty:
    """Intervals from the spread over prunings whose importance has a random part.

    Arguments:
        fit: an unlearned fit with the baseline that it came from.
        level: of the intervals.
        replicas: how many prunings.
        share: the length of a replica's fine-tuning, as a share of the fit's.
        jitter: each neuron's importance is multiplied by exp(jitter z), z ~ N(0, 1).
        schedule: how much is pruned; the recommended schedule unless told.
        resample: whether each replica also sees its own draw of readings.
        seed: of everything random.
        directory: where checkpoints are kept; killed replicas found there are continued.
        watcher: is told how each replica goes.
    """
    _check("pruning", replicas, share)
    if not jitter >= 0:
        raise UserError(f"a pruning ensemble needs a jitter of zero or more, not {jitter}")
    if fit.before is None or fit.partition is None or fit.pruning is None:
        raise UserError(
            f"this {fit.method} fit was not pruned, so it has no other prunings to be compared "
            "with; ask for 'laplace' or 'bootstrap'"
        )
    schedule = schedule or Schedule(criterion=fit.pruning.criterion)
    schedule = replace(schedule, criterion=Jittered(criterion(schedule.criterion), jitter))
    weight, _ = trusted(fit)
    plan = _Replicas(fit, fit.protocol.scaled_to(share), seed, directory, watcher)
    fits = []
    for k in range(replicas):
        model = _pruned(fit.before, fit.partition, schedule, plan.seed_of(k))
        fits.append(plan.train(k, model, plan.resampled(weight, k) if resample else weight))
    told = {"replicas": replicas, "share": share, "jitter": jitter, "resample": resample}
    return _spread("pruning", fit, fits, level, told)


@dataclass(frozen=True)
class Jittered:
    """A criterion whose scores are multiplied by chance."""

    criterion: Criterion
    size: float

    @property
    def __name__(self) -> str:
        return f"{getattr(self.criterion, '__name__', 'custom')}, jittered"

    def __call__(self, view: LayerView) -> np.ndarray:
        """The scores."""
        scores = np.asarray(self.criterion(view), np.float64)
        draw = np.random.default_rng((_STREAM, view.seed)).standard_normal(scores.shape)
        return scores * np.exp(self.size * draw)


@dataclass(frozen=True, eq=False)
class _Replicas:
    """What all replicas share."""

    fit: Fit
    protocol: Protocol
    seed: int
    directory: Any
    watcher: Watcher | None

    def seed_of(self, number: int) -> int:
        """Far apart, since a pruning's steps use the seeds that follow."""
        return self.seed + 1_000_003 * (number + 1)

    def resampled(self, weight: np.ndarray, number: int) -> np.ndarray:
        """The readings' weights times how often each is drawn."""
        rows = np.flatnonzero(weight > 0)
        random = np.random.default_rng((_STREAM, self.seed, number))
        counts = random.multinomial(len(rows), np.full(len(rows), 1 / len(rows)))
        drawn = np.zeros_like(weight)
        drawn[rows] = weight[rows] * counts
        return drawn

    def train(self, number: int, model: Model, weight: np.ndarray) -> Fit:
        place = None if self.directory is None else Path(self.directory) / f"replica{number}"
        fit = self.fit
        return train(
            fit.problem, fit.observations, self.protocol, fit.seed, weights=weight, start=model,
            scales=fit.details.get("scales"), directory=place, watcher=self.watcher,
        )  # fmt: skip


def _pruned(before: Fit, partition: Partition, schedule: Schedule, seed: int) -> Model:
    assert before.observations is not None
    seen = NativePrunable(before.model, before.observations.points)
    smaller, _ = prune(seen, partition, schedule, seed)
    return compacted(smaller.model)


def _spread(method: str, fit: Fit, fits: list[Fit], level: float, told: dict) -> Uncertainty:
    """Intervals around the fit as wide as the replicas are spread."""
    good = [replica for replica in fits if replica.status.good]
    if len(good) < 2:
        raise UserError(f"only {len(good)} of {len(fits)} replicas did not diverge")

    def interval(middle: Any, samples: list[Any]) -> Band:
        _, deviation = mean_and_deviation(np.array(samples))
        return around(middle, deviation, len(good), level, False)

    def bands(points: Any, what: str) -> Band:
        return interval(fit.predict(points, what), [r.predict(points, what) for r in good])

    unknowns = {
        name: ends(interval(value, [replica.unknowns[name] for replica in good]))
        for name, value in fit.unknowns.items()
    }
    return Uncertainty(method, level, unknowns, bands, {**told, "diverged": len(fits) - len(good)})


def _check(method: str, replicas: int, share: float) -> None:
    if replicas < 2:
        raise UserError(f"{method} needs 2 replicas or more, not {replicas}")
    if not share > 0:
        raise UserError(f"{method} needs a share of the training above zero, not {share}")
