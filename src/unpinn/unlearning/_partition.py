"""Part I of Algorithm 1: retained and suspect readings, by a share, a threshold, or evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from unpinn._errors import UserError
from unpinn.training import Partition
from unpinn.unlearning._mixture import fit_mixture, posterior_of
from unpinn.unlearning._scores import Scores

# Mean change of the readings' weights below which the partition has settled.
_SETTLED = 0.003


@runtime_checkable
class Rule(Protocol):
    """Anything that turns scores into a partition."""

    def __call__(self, scores: Scores) -> Partition:
        """Decide."""
        ...


@dataclass(frozen=True)
class ByShare:
    r"""Retain the share $\rho$ of readings with the smallest score (the paper's rule).

    >>> scores = Scores(np.array([[0.1], [-3.0], [0.2], [1.0]]), np.zeros((4, 1)))
    >>> ByShare(0.5)(scores).retained.tolist()
    [True, False, True, False]
    """

    share: float

    def __post_init__(self):
        if not 0 < self.share <= 1:
            raise UserError(f"the share to retain must be in (0, 1], not {self.share}")

    def __call__(self, scores: Scores) -> Partition:
        """The round(share * N) best readings; ties are settled by order."""
        score = scores.score
        count = max(1, round(self.share * len(score)))
        order = np.argsort(score, kind="stable")
        retained = np.zeros(len(score), bool)
        retained[order[:count]] = True
        threshold = float(score[order[count]]) if count < len(score) else float("inf")
        return _hard(scores, retained, threshold, f"the {self.share:.0%} with the smallest score")


@dataclass(frozen=True)
class ByThreshold:
    """Retain what scores below a fixed threshold."""

    threshold: float

    def __call__(self, scores: Scores) -> Partition:
        """All readings with M below the threshold."""
        retained = scores.score < self.threshold
        if not retained.any():
            raise UserError(
                f"no reading scores below {self.threshold:g} (the smallest score is "
                f"{scores.score.min():.3g}); raise the threshold"
            )
        return _hard(scores, retained, self.threshold, f"score below {self.threshold:g}")


@dataclass(frozen=True)
class ByMixture:
    r"""Retain by the posterior of a two-Gaussian mixture: no number to choose.

    A reading is suspect where it is more likely bad than good. With `soft` each reading's weight
    is its expected precision, $E[1/\sigma^2]$ in units of a good reading's: a suspect one is not
    lost, but counts for what it is worth. Where one kind of error explains the misfits, nothing is
    forgotten.
    """

    soft: bool = True
    cut: float = 0.5

    def __post_init__(self):
        if not 0 < self.cut <= 1:
            raise UserError(f"the posterior to cut at must be in (0, 1], not {self.cut}")

    def __call__(self, scores: Scores) -> Partition:
        """Fit the mixture and decide."""
        found = fit_mixture(scores.misfits)
        noise, posterior = found.noise, found.posterior
        if noise.components == 1:
            everything = np.ones(len(posterior), bool)
            rule = "one kind of error explains the misfits: nothing to forget"
            return _hard(scores, everything, float("inf"), rule, posterior, noise)
        retained = posterior < self.cut
        if not retained.any():
            retained[np.argmin(posterior)] = True
        ratio = (noise.low / noise.high) ** 2
        weight = (1 - posterior) + posterior * ratio if self.soft else retained.astype(float)
        bound = float(scores.misfit[retained].max())
        rule = (
            f"two kinds of errors: {noise.low:.3g} and {noise.high:.3g}, {noise.share:.0%} bad; "
            f"suspect where bad is likelier than {self.cut:.0%}"
        )
        return Partition(
            scores.misfit, scores.residual, scores.score, retained, weight, bound, rule,
            posterior, noise,
        )  # fmt: skip


def part(scores: Scores, rule: Rule, seen: np.ndarray) -> Partition:
    """Decide by some readings alone; the others are judged by what was found, and weigh nothing.

    Arguments:
        scores: of all readings.
        rule: how to decide.
        seen: which readings may have a say, (N,) of bool.
    """
    if seen.all():
        return rule(scores)
    found = rule(scores.take(seen))
    weight = np.zeros(len(seen))
    weight[seen] = found.weight
    posterior = None
    if found.posterior is not None and found.noise is not None:
        posterior = posterior_of(scores.misfits, found.noise)
        retained = posterior <= found.posterior[found.retained].max()
    else:
        retained = scores.score < found.threshold
    retained[seen] = found.retained
    return Partition(
        scores.misfit, scores.residual, scores.score, retained, weight, found.threshold,
        found.rule, posterior, found.noise,
    )  # fmt: skip


def settled(old: Partition | None, new: Partition) -> bool:
    """Whether another look changes so little that another round would not pay."""
    return old is not None and float(np.mean(np.abs(old.weight - new.weight))) < _SETTLED


def rows(partition: Partition, seen: np.ndarray) -> Partition:
    """The part of a partition that tells of some readings, (N,) of bool."""
    if seen.all():
        return partition
    names = ("misfit", "residual", "score", "retained", "weight", "posterior")
    arrays = {name: getattr(partition, name) for name in names}
    return replace(partition, **{n: a[seen] for n, a in arrays.items() if a is not None})


def _hard(scores: Scores, retained, threshold, rule, posterior=None, noise=None) -> Partition:
    return Partition(
        scores.misfit, scores.residual, scores.score, retained, retained.astype(np.float64),
        float(threshold), rule, posterior, noise,
    )  # fmt: skip
