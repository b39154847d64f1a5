"""How far a fit can be trusted: intervals on unknown numbers and bands on fields."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.evaluation import IntervalQuality, interval_quality
from unpinn.training import Fit

Interval = tuple[float, float]
Band = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Central intervals of one level.

    Arguments:
        method: how they were found.
        level: the chance with which they claim to hold the truth.
        unknowns: of every unknown number, in the user's units.
        bands: gives the lower and upper ends, (n,) each, for points and a field's name.
        details: what the method has to say about itself, in JSON's types.
    """

    method: str
    level: float
    unknowns: Mapping[str, Interval]
    bands: Callable[[Any, str], Band]
    details: Mapping[str, Any] = field(default_factory=dict)

    def band(self, points: Any, what: str) -> Band:
        """The lower and upper ends for a field, or a derivative of one, at points."""
        return self.bands(points, what)


def intervals(fit: Fit, method: str = "laplace", level: float = 0.9, **options: Any) -> Uncertainty:
    """Intervals for a fit.

    Arguments:
        fit: what to judge: an unlearned fit, or any other; one with members (dropout, posterior
            samples, an ensemble) answers to "members" alone.
        method: "laplace", a Gaussian in the last layer and the unknowns, at no cost; "linearised",
            the same in all trained numbers, for networks that are not too large; "bootstrap",
            the spread over resampled readings; "pruning", the spread over other prunings and
            resampled readings; "members", the spread over a fit's own members.
        level: the chance with which the intervals are to hold the truth.
        options: of the method: see `laplace`, `linearised`, `bootstrap`, `pruning_ensemble`,
            `of_members`.
    """
    from unpinn.rivals._laplace import laplace
    from unpinn.rivals._linearised import linearised
    from unpinn.rivals._resampling import bootstrap, pruning_ensemble

    known: dict[str, Callable[..., Uncertainty]] = {
        "laplace": laplace,
        "linearised": linearised,
        "bootstrap": bootstrap,
        "pruning": pruning_ensemble,
        "members": of_members,
    }
    if method not in known:
        close = difflib.get_close_matches(method, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UserError(f"there is no uncertainty {method!r} ({', '.join(known)}){hint}")
    if not 0 < level < 1:
        raise UserError(f"the level of intervals must be between 0 and 1, not {level}")
    if fit.observations is None:
        raise UserError("this fit has no readings, so its uncertainty cannot be judged")
    if (fit.members is None) == (method == "members"):
        have = "is a single model" if fit.members is None else "has members"
        want = "another method than 'members'" if fit.members is None else "method='members'"
        raise UserError(f"this {fit.method} fit {have}; ask for {want}")
    return known[method](fit, level, **options)


def of_members(fit: Fit, level: float) -> Uncertainty:
    """The members' spread: the truth is taken for one more draw from where they came from."""
    samples = fit.unknown_samples
    count = len(next(iter(_leaves(fit))))

    def bands(points: Any, what: str) -> Band:
        return around(*mean_and_deviation(fit.predict_samples(points, what)), count, level, True)

    unknowns = {
        name: ends(around(*mean_and_deviation(values), count, level, True))
        for name, values in samples.items()
    }
    return Uncertainty("members", level, unknowns, bands, {"members": count})


def judged(
    uncertainty: Uncertainty,
    fit: Fit,
    points: np.ndarray,
    fields: Mapping[str, np.ndarray],
    unknowns: Mapping[str, float] | None = None,
) -> dict[str, IntervalQuality]:
    """What the intervals are worth where the truth is known.

    Arguments:
        uncertainty: the intervals.
        fit: the fit that they are of.
        points: where fields are known, (n, dimensions).
        fields: true values by name, (n,) each.
        unknowns: true unknown numbers; they are judged together as "unknowns".
    """
    found = {}
    for name, truth in fields.items():
        low, high = uncertainty.band(points, name)
        estimate = fit.predict(points, name)
        found[name] = interval_quality(low, high, truth, level=uncertainty.level, estimate=estimate)
    if unknowns:
        low, high = np.array([uncertainty.unknowns[name] for name in unknowns]).T
        estimate = np.array([fit.unknowns[name] for name in unknowns])
        truth = np.array(list(unknowns.values()), np.float64)
        found["unknowns"] = interval_quality(
            low, high, truth, level=uncertainty.level, estimate=estimate
        )
    return found


def mean_and_deviation(samples: np.ndarray) -> Band:
    """Mean and standard deviation over the leading axis."""
    samples = np.asarray(samples, np.float64)
    if len(samples) < 2:
        raise UserError("a spread needs two members or more")
    return np.asarray(samples.mean(axis=0)), np.asarray(samples.std(axis=0, ddof=1))


def around(middle: Any, deviation: Any, count: int, level: float, predictive: bool) -> Band:
    """Student's interval around a middle, for a deviation that was estimated from few samples.

    Arguments:
        middle: where the intervals lie.
        deviation: the samples' standard deviation.
        count: how many samples there were.
        level: the interval's.
        predictive: whether it is for one more sample, not for a middle of its own.
    """
    from scipy.stats import t

    half = float(t.ppf((1 + level) / 2, count - 1)) * np.asarray(deviation)
    half = half * np.sqrt(1 + 1 / count) if predictive else half
    return np.asarray(middle - half), np.asarray(middle + half)


def ends(band: Band) -> Interval:
    """A band of one point as two numbers."""
    low, high = (float(end) for end in band)
    return low, high


def _leaves(fit: Fit):
    import jax

    return jax.tree_util.tree_leaves(fit.members)
