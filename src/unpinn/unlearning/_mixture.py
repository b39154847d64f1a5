r"""One kind of readings or two? A mixture of two Gaussians, fitted to the misfits.

Each reading's misfit vector is $N(0, s_k^2 I)$ with $k$ good or bad. Expectation--maximisation
finds $s_1 < s_2$ and the share of bad readings; the Bayesian information criterion says whether
two kinds explain the misfits better than one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpinn._errors import UserError
from unpinn.training import NoiseEstimate

_LEAST_READINGS = 20
# No level falls below this share of all misfits' size: misfits of exactly zero have no density.
_FLOOR = 1e-6
_TINY = 1e-150


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A noise estimate and each reading's probability of being bad."""

    noise: NoiseEstimate
    posterior: np.ndarray


def fit_mixture(misfits: np.ndarray, iterations: int = 500) -> MixtureFit:
    """Fit one and two kinds of Gaussian errors to misfits (N, quantities), NaN where missing.

    >>> rng = np.random.default_rng(0)
    >>> sigma = np.where(rng.random(2000) < 0.4, 1.0, 0.1)
    >>> noise = fit_mixture(sigma[:, None] * rng.standard_normal((2000, 1))).noise
    >>> noise.components, round(noise.low, 1), round(noise.high, 1), round(noise.share, 1)
    (2, 0.1, 1.0, 0.4)
    """
    square, count = _squares(misfits)
    if not count.sum():
        raise UserError("there is no misfit to judge the noise by")
    single = float(np.sqrt(square.sum() / count.sum()))
    if len(square) < _LEAST_READINGS or single == 0.0:
        return _one_kind(single, len(square), 0.0)
    best = max(
        (_maximise(square, count, start, iterations) for start in _starts(square, count, single)),
        key=lambda found: found[0],
    )
    likelihood, low, high, share = best
    alone = float(np.sum(_log_density(square, count, single)))
    # Two more numbers are fitted; the criterion's price for each is half the log of the sample.
    evidence = likelihood - alone - np.log(len(square))
    if evidence <= 0 or high < 1.2 * low or not 0 < share < 1:
        return _one_kind(single, len(square), evidence)
    posterior = _posterior(square, count, low, high, share)
    noise = NoiseEstimate(float(low), float(high), float(share), 2, float(evidence))
    return MixtureFit(noise, posterior)


def posterior_of(misfits: np.ndarray, noise: NoiseEstimate) -> np.ndarray:
    """Each reading's probability of being bad under a known noise."""
    square, count = _squares(misfits)
    if noise.components == 1:
        return np.zeros(len(square))
    return _posterior(square, count, noise.low, noise.high, noise.share)


def log_densities(misfits: np.ndarray, noise: NoiseEstimate) -> np.ndarray:
    """Each reading's log-likelihood under a noise estimate, (N,); higher is better."""
    square, count = _squares(misfits)
    good = _log_density(square, count, noise.low)
    if noise.components == 1:
        return good
    bad = _log_density(square, count, noise.high)
    return np.logaddexp(np.log1p(-noise.share) + good, np.log(noise.share) + bad)


def _squares(misfits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each reading's sum of squares and its number of quantities."""
    misfits = np.asarray(misfits, np.float64)
    misfits = misfits[:, None] if misfits.ndim == 1 else misfits
    present = np.isfinite(misfits)
    return np.where(present, misfits**2, 0.0).sum(axis=1), present.sum(axis=1)


def _one_kind(level: float, readings: int, evidence: float) -> MixtureFit:
    return MixtureFit(NoiseEstimate(level, level, 0.0, 1, float(evidence)), np.zeros(readings))


def _starts(square: np.ndarray, count: np.ndarray, single: float):
    """Starting values: the lower and upper part of the misfits, split at several places."""
    level = np.sqrt(square / np.maximum(count, 1))
    for split in (0.3, 0.5, 0.7, 0.9):
        bound = np.quantile(level, split)
        low = np.sqrt(np.mean(level[level <= bound] ** 2))
        high = np.sqrt(np.mean(level[level > bound] ** 2)) if (level > bound).any() else 2 * bound
        # Where most misfits are zero, the lower part has no size of its own.
        low = low if low > 0 else _FLOOR * single
        if high > low:
            yield low, high, 1 - split


def _maximise(square, count, start: tuple[float, float, float], iterations: int):
    low, high, share = start
    total = count.sum()
    floor = _FLOOR * np.sqrt(square.sum() / total)
    last = -np.inf
    for _ in range(iterations):
        posterior = _posterior(square, count, low, high, share)
        bad = float((posterior * count).sum())
        good = float(((1 - posterior) * count).sum())
        if bad < 1e-9 or good < 1e-9:
            break
        low = max(np.sqrt(((1 - posterior) * square).sum() / good), floor)
        high = max(np.sqrt((posterior * square).sum() / bad), floor)
        share = float(posterior.mean())
        now = _total(square, count, low, high, share)
        if now - last < 1e-10 * abs(now):
            break
        last = now
    if low > high:
        low, high, share = high, low, 1 - share
    return _total(square, count, low, high, share), low, high, share


def _total(square, count, low, high, share) -> float:
    share = min(max(share, 1e-12), 1 - 1e-12)
    good = np.log1p(-share) + _log_density(square, count, low)
    bad = np.log(share) + _log_density(square, count, high)
    return float(np.logaddexp(good, bad).sum())


def _posterior(square, count, low, high, share) -> np.ndarray:
    share = min(max(share, 1e-12), 1 - 1e-12)
    good = np.log1p(-share) + _log_density(square, count, low)
    bad = np.log(share) + _log_density(square, count, high)
    return np.exp(bad - np.logaddexp(good, bad))


def _log_density(square, count, level) -> np.ndarray:
    level = max(level, _TINY)
    return -0.5 * square / level**2 - count * (np.log(level) + 0.5 * np.log(2 * np.pi))
