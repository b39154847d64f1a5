"""Whether stated uncertainties deserve belief: intervals and Gaussian predictions against truth.

All arrays of one call have one shape, and every entry counts as one prediction: the points of a
field, the unknowns of a problem, or one unknown over many seeds and problems.
"""

from dataclasses import dataclass

import numpy as np

from unpinn._errors import UserError
from unpinn.evaluation._checks import Numbers, fraction, numbers, same_shape

LEVELS = tuple(percent / 100 for percent in range(5, 100, 5))
"""The central probabilities .05, .10, ... .95 at which Gaussian predictions are checked."""


@dataclass(frozen=True)
class IntervalQuality:
    """What a set of intervals is worth.

    `coverage` should equal `level`; `width_to_error` is the mean width over the mean absolute error
    of the estimates (at a level of .9, well-calibrated Gaussian intervals have 4.12);
    `rank_correlation` between width and error says whether wide intervals are where the errors are
    (None when either is constant); `score` is the interval score, smaller being better.
    """

    level: float
    coverage: float
    mean_width: float
    mean_error: float
    width_to_error: float | None
    rank_correlation: float | None
    score: float


@dataclass(frozen=True)
class GaussianQuality:
    """What a set of Gaussian predictions is worth.

    `calibration_error` is zero and `standardised_rms` one when the stated deviations are right.
    """

    calibration_error: float
    negative_log_density: float
    standardised_rms: float
    mean_deviation: float


def coverage(lower: Numbers, upper: Numbers, truth: Numbers) -> float:
    """Share of the closed intervals that hold the truth.

    >>> coverage([0.0, 0.0], [1.0, 1.0], [0.5, 2.0])
    0.5
    """
    lower, upper, truth = _intervals(lower, upper, truth)
    return float(np.mean((lower <= truth) & (truth <= upper)))


def coverage_bounds(
    lower: Numbers, upper: Numbers, truth: Numbers, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Clopper-Pearson bounds on the chance that an interval holds the truth.

    Tells whether a coverage over a handful of seeds and problems contradicts the nominal level. The
    predictions must be independent, so it is for unknowns over runs, not for neighbouring points of
    one field.

    >>> low, high = coverage_bounds([0.0] * 9, [1.0] * 9, [0.5] * 9)
    >>> round(low, 3), high
    (0.664, 1.0)
    """
    from scipy.stats import beta

    lower, upper, truth = _intervals(lower, upper, truth)
    hits, trials = int(np.sum((lower <= truth) & (truth <= upper))), truth.size
    tail = (1 - fraction("confidence", confidence)) / 2
    lowest = float(beta.ppf(tail, hits, trials - hits + 1)) if hits else 0.0
    highest = float(beta.ppf(1 - tail, hits + 1, trials - hits)) if hits < trials else 1.0
    return lowest, highest


def mean_width(lower: Numbers, upper: Numbers) -> float:
    """Mean width of the intervals.

    >>> mean_width([0.0, 1.0], [1.0, 4.0])
    2.0
    """
    lower, upper = _intervals(lower, upper)
    return float(np.mean(upper - lower))


def width_against_error(
    lower: Numbers, upper: Numbers, truth: Numbers, estimate: Numbers | None = None
) -> tuple[float | None, float | None]:
    """Mean width over mean absolute error, and Spearman's rank correlation of width and error.

    The ratio is None when there is no error at all, the correlation when width or error is the same
    everywhere.

    Arguments:
        lower: the lower ends of the intervals.
        upper: their upper ends.
        truth: what they should hold.
        estimate: the point estimates; the middles of the intervals by default.

    >>> width_against_error([0.0, 0.0, 0.0], [2.0, 4.0, 6.0], [2.0, 4.0, 6.0])
    (2.0, 1.0)
    """
    from scipy.stats import spearmanr

    lower, upper, truth = _intervals(lower, upper, truth)
    width, error = (upper - lower).ravel(), _absolute_errors(lower, upper, truth, estimate).ravel()
    ratio = float(width.mean() / error.mean()) if error.any() else None
    if np.ptp(width) == 0 or np.ptp(error) == 0:
        return ratio, None
    return ratio, float(spearmanr(width, error).statistic)


def interval_score(lower: Numbers, upper: Numbers, truth: Numbers, *, level: float = 0.9) -> float:
    r"""Mean interval score of Winkler, a proper score: smaller is better.

    $$(u - l) + \tfrac{2}{1 - \text{level}} [(l - q)_+ + (q - u)_+].$$

    >>> interval_score([0.0], [1.0], [1.5], level=0.5)
    3.0
    """
    lower, upper, truth = _intervals(lower, upper, truth)
    outside = np.maximum(lower - truth, 0) + np.maximum(truth - upper, 0)
    return float(np.mean(upper - lower + 2 / (1 - fraction("level", level)) * outside))


def interval_quality(
    lower: Numbers,
    upper: Numbers,
    truth: Numbers,
    *,
    level: float = 0.9,
    estimate: Numbers | None = None,
) -> IntervalQuality:
    """All measures of a set of intervals that claim to hold the truth with chance `level`.

    >>> interval_quality([0.0, 0.0], [1.0, 1.0], [0.5, 2.0], level=0.5).coverage
    0.5
    """
    low, high, target = _intervals(lower, upper, truth)
    ratio, correlation = width_against_error(low, high, target, estimate)
    return IntervalQuality(
        level=fraction("level", level),
        coverage=coverage(low, high, target),
        mean_width=mean_width(low, high),
        mean_error=float(_absolute_errors(low, high, target, estimate).mean()),
        width_to_error=ratio,
        rank_correlation=correlation,
        score=interval_score(low, high, target, level=level),
    )


def gaussian_interval(
    mean: Numbers, std: Numbers, *, level: float = 0.9
) -> tuple[np.ndarray, np.ndarray]:
    """Central interval of a Gaussian prediction.

    >>> lower, upper = gaussian_interval([0.0], [1.0], level=0.9)
    >>> round(float(upper[0]), 3)
    1.645
    """
    from scipy.special import ndtri

    mean, std = _gaussians(mean, std)
    half = float(ndtri((1 + fraction("level", level)) / 2)) * std
    return mean - half, mean + half


def gaussian_coverage(
    mean: Numbers, std: Numbers, truth: Numbers, *, levels: Numbers = LEVELS
) -> np.ndarray:
    """Share of the truth inside the central interval of each level: the calibration curve.

    >>> gaussian_coverage([0.0, 0.0], [1.0, 1.0], [0.5, 1.5], levels=[0.5, 0.9]).tolist()
    [0.5, 1.0]
    """
    from scipy.special import ndtr

    mean, std, truth = _gaussians(mean, std, truth)
    checked = [fraction("levels", level) for level in numbers("levels", levels).ravel()]
    # The level at which an interval just reaches the truth; sorted once, it answers every level.
    reached = np.sort((2 * ndtr(np.abs(truth - mean) / std) - 1).ravel())
    return np.searchsorted(reached, checked, side="right") / reached.size


def expected_calibration_error(
    mean: Numbers, std: Numbers, truth: Numbers, *, levels: Numbers = LEVELS
) -> float:
    """Mean over the levels of |observed coverage - level| for Gaussian predictions.

    >>> round(expected_calibration_error([0.0, 0.0], [1.0, 1.0], [0.5, 1.5], levels=[0.5, 0.9]), 6)
    0.05
    """
    observed = gaussian_coverage(mean, std, truth, levels=levels)
    return float(np.mean(np.abs(observed - numbers("levels", levels).ravel())))


def negative_log_density(mean: Numbers, std: Numbers, truth: Numbers) -> float:
    r"""Mean negative log predictive density, $\tfrac12 \log 2\pi\sigma^2 + (q-\mu)^2 / 2\sigma^2$.

    >>> round(negative_log_density([0.0], [1.0], [1.0]), 6)
    1.418939
    """
    mean, std, truth = _gaussians(mean, std, truth)
    standardised = (truth - mean) / std
    return float(np.mean(0.5 * np.log(2 * np.pi) + np.log(std) + 0.5 * standardised**2))


def gaussian_quality(mean: Numbers, std: Numbers, truth: Numbers) -> GaussianQuality:
    """All measures of a set of Gaussian predictions.

    >>> gaussian_quality([0.0, 0.0], [1.0, 1.0], [-1.0, 1.0]).standardised_rms
    1.0
    """
    middle, deviation, target = _gaussians(mean, std, truth)
    return GaussianQuality(
        calibration_error=expected_calibration_error(middle, deviation, target),
        negative_log_density=negative_log_density(middle, deviation, target),
        standardised_rms=float(np.sqrt(np.mean(((target - middle) / deviation) ** 2))),
        mean_deviation=float(deviation.mean()),
    )


def _intervals(
    lower: Numbers, upper: Numbers, truth: Numbers | None = None
) -> tuple[np.ndarray, ...]:
    given = {"lower": lower, "upper": upper}
    arrays = same_shape(**(given if truth is None else given | {"truth": truth}))
    crossed = int(np.sum(arrays[0] > arrays[1]))
    if crossed:
        raise UserError(f"lower is above upper in {crossed} intervals; swap the two there.")
    return arrays


def _gaussians(mean: Numbers, std: Numbers, truth: Numbers | None = None) -> tuple[np.ndarray, ...]:
    given = {"mean": mean, "std": std}
    arrays = same_shape(**(given if truth is None else given | {"truth": truth}))
    wrong = int(np.sum(arrays[1] <= 0))
    if wrong:
        raise UserError(f"std has {wrong} values that are not positive; pass positive deviations.")
    return arrays


def _absolute_errors(
    lower: np.ndarray, upper: np.ndarray, truth: np.ndarray, estimate: Numbers | None
) -> np.ndarray:
    middle = (lower + upper) / 2 if estimate is None else estimate
    target, guess = same_shape(truth=truth, estimate=middle)
    return np.abs(guess - target)
