r"""One kind of readings or two? A mixture of two Gaussians, fitted to the misfits.

Each reading's misfit vector is $N(0, s_k^2 I)$ with $k$ good or bad. Expectation--maximisation
finds $s_1 < s_2$ and the share of bad readings; the Bayesian information criterion says whether
two kinds explain the misfits better than one, and whether the measured quantities, which may have
different units, need levels of their own: $c_q s_k$ for quantity $q$.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unpinn._errors import UserError
from unpinn.training import NoiseEstimate

_LEAST_READINGS = 20
# Quantities whose errors differ by less are taken to be alike, however sure the difference.
_ALIKE = 1.25
_ALTERNATIONS = 30
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
    plain = _fit_alike(misfits, iterations)
    told = _factors(misfits, iterations)
    if not told:
        return plain
    found = _fit_alike(_over(misfits, told), iterations)
    noise = replace(found.noise, factors=told)
    gain = np.sum(log_densities(misfits, noise)) - np.sum(log_densities(misfits, plain.noise))
    price = 0.5 * (len(told) - 1) * np.log(len(misfits))
    return MixtureFit(noise, found.posterior) if gain > price else plain


def _fit_alike(misfits: np.ndarray, iterations: int) -> MixtureFit:
    """The fit where one pair of levels holds for all quantities."""
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


def _factors(misfits: np.ndarray, iterations: int) -> tuple[float, ...]:
    """How large each quantity's errors are beside the first's; empty where they are alike.

    Levels for given factors and factors for given levels are found in turn, each at its likeliest.
    """
    misfits = np.asarray(misfits, np.float64)
    if misfits.ndim == 1 or misfits.shape[1] == 1:
        return ()
    present = np.isfinite(misfits)
    if present.sum(axis=0).min() < _LEAST_READINGS:
        return ()
    # To start from what most readings say: a pooled fit of unlike quantities takes the larger
    # ones for the bad ones.
    factors = np.nanmedian(np.abs(misfits), axis=0)
    if not (factors > 0).all():
        return ()
    for _ in range(_ALTERNATIONS):
        scaled = _over(misfits, factors)
        found = _fit_alike(scaled, iterations)
        noise, posterior = found.noise, found.posterior
        precision = (1 - posterior) / noise.low**2 + posterior / noise.high**2
        weighted = np.where(present, scaled**2, 0.0) * precision[:, None]
        change = np.sqrt(weighted.sum(axis=0) / present.sum(axis=0))
        factors = factors * change
        if np.ptp(change / change.mean()) < 1e-6:
            break
    factors = factors / factors[0]
    return tuple(factors.tolist()) if factors.max() > _ALIKE * factors.min() else ()


def _over(misfits: np.ndarray, factors) -> np.ndarray:
    """Misfits in the units of the first quantity's; as they are where there are no factors."""
    return np.asarray(misfits, np.float64) / np.asarray(factors) if len(factors) else misfits


def posterior_of(misfits: np.ndarray, noise: NoiseEstimate) -> np.ndarray:
    """Each reading's probability of being bad under a known noise."""
    square, count = _squares(_over(misfits, noise.factors))
    if noise.components == 1:
        return np.zeros(len(square))
    return _posterior(square, count, noise.low, noise.high, noise.share)


def log_densities(misfits: np.ndarray, noise: NoiseEstimate) -> np.ndarray:
    """Each reading's log-likelihood under a noise estimate, (N,); higher is better."""
    square, count = _squares(_over(misfits, noise.factors))
    # A density in other units is another number.
    units = np.isfinite(misfits) @ np.log(noise.factors) if noise.factors else 0.0
    good = _log_density(square, count, noise.low) - units
    if noise.components == 1:
        return good
    bad = _log_density(square, count, noise.high) - units
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
