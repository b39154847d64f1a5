"""How thoroughly the suspects were forgotten.

The yardstick is a model retrained without them: it never saw them. An unlearned model has forgotten
as far as it cannot be told from the retrained one, by its predictions, by its unknowns, or by its
misfits on the suspects. Misfits are magnitudes, one number of at least zero for each reading.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from unpinn._errors import UserError
from unpinn.evaluation._checks import Numbers, numbers, same_shape
from unpinn.evaluation._detection import area_under_curve
from unpinn.evaluation._errors import relative_l2


@dataclass(frozen=True)
class MisfitDistance:
    """How far apart two models' misfits on the same suspects are distributed.

    `statistic` is the largest gap of the two distribution functions (Kolmogorov and Smirnov), in
    [0, 1]; `wasserstein` the mean shift in the unit of the readings and `relative_wasserstein` the
    same over the mean misfit of the retrained model (None where that is zero). `p_value` treats the
    two samples as independent; on the same readings they are not, and it errs towards "alike".
    """

    statistic: float
    p_value: float
    wasserstein: float
    relative_wasserstein: float | None


@dataclass(frozen=True)
class Membership:
    """Whether misfits betray that the suspects were trained on.

    `auc` is the chance that a fresh reading is fitted worse than a suspect: .5 when nothing is
    remembered, near 1 when the suspects were memorised. `advantage` is the largest excess of true
    over false accusations that a threshold on the misfit reaches. `p_value` is that of the
    one-sided Mann-Whitney test against .5.
    """

    auc: float
    advantage: float
    p_value: float


@dataclass(frozen=True)
class Evidence:
    """What one model leaves behind to be compared by.

    Arguments:
        predictions: its fields on the test grid.
        suspect_misfits: its misfit on every suspect.
        fresh_misfits: its misfit on fresh readings with the suspects' noise, which nobody saw.
        unknowns: its unknowns by name, numbers or arrays.
    """

    predictions: Numbers
    suspect_misfits: Numbers
    fresh_misfits: Numbers | None = None
    unknowns: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True)
class ForgetQuality:
    """The unlearned model beside the one retrained without the suspects.

    `predictions` and `unknowns` are relative L2 distances, the retrained model being the unit (an
    unknown that it puts at zero has None). The retrained model's own membership, which should be
    near .5, says how much of the unlearned one's is due to the readings themselves.
    """

    predictions: float
    unknowns: dict[str, float | None]
    misfits: MisfitDistance
    membership: Membership | None
    membership_retrained: Membership | None


def forget_quality(unlearned: Evidence, retrained: Evidence) -> ForgetQuality:
    """Every distance between an unlearned model and the one retrained without the suspects.

    >>> seen = Evidence([1.0, 2.0], [0.1, 0.2], [1.0, 2.0], {"c": 2.0})
    >>> unseen = Evidence([1.0, 2.0], [1.0, 2.0], [1.0, 2.0], {"c": 2.5})
    >>> quality = forget_quality(seen, unseen)
    >>> quality.predictions, quality.unknowns["c"], quality.misfits.statistic
    (0.0, 0.2, 1.0)
    >>> quality.membership.auc, quality.membership_retrained.auc
    (1.0, 0.5)
    """
    return ForgetQuality(
        predictions=prediction_distance(unlearned.predictions, retrained.predictions),
        unknowns=unknown_distances(unlearned.unknowns, retrained.unknowns),
        misfits=misfit_distance(unlearned.suspect_misfits, retrained.suspect_misfits),
        membership=_membership_of(unlearned),
        membership_retrained=_membership_of(retrained),
    )


def prediction_distance(unlearned: Numbers, retrained: Numbers) -> float:
    """Relative L2 distance of two models' predictions on the same points, the second as the unit.

    >>> prediction_distance([1.0, 2.5], [0.0, 2.5])
    0.4
    """
    first, second = same_shape(
        **{"unlearned predictions": unlearned, "retrained predictions": retrained}
    )
    return relative_l2(first, second)


def unknown_distances(
    unlearned: Mapping[str, Numbers], retrained: Mapping[str, Numbers]
) -> dict[str, float | None]:
    """Relative L2 distance of every unknown, None where the retrained one is zero everywhere.

    >>> unknown_distances({"alpha": 1.5, "beta": 1.0}, {"alpha": 1.0, "beta": 0.0})
    {'alpha': 0.5, 'beta': None}
    """
    if set(unlearned) != set(retrained):
        lone = ", ".join(sorted(set(unlearned) ^ set(retrained)))
        raise UserError(f"unknowns {lone} belong to one model only; pass the same names for both.")
    found: dict[str, float | None] = {}
    for name in unlearned:
        estimate, reference = same_shape(
            **{f"unlearned {name}": unlearned[name], f"retrained {name}": retrained[name]}
        )
        found[name] = relative_l2(estimate, reference) if reference.any() else None
    return found


def misfit_distance(unlearned: Numbers, retrained: Numbers) -> MisfitDistance:
    """Two-sample distances between two models' misfits on the suspects.

    >>> distance = misfit_distance([1.0, 2.0], [2.0, 3.0])
    >>> distance.statistic, distance.wasserstein, distance.relative_wasserstein
    (0.5, 1.0, 0.4)
    """
    from scipy.stats import ks_2samp, wasserstein_distance

    first = _misfits("unlearned misfits", unlearned)
    second = _misfits("retrained misfits", retrained)
    # The exact null distribution is costly, and of no more use, once the samples are large.
    method = "exact" if first.size * second.size <= 10_000 else "asymp"
    with warnings.catch_warnings():
        # SciPy warns when rounding pushes the exact chance above 1, and falls back to the other.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation", RuntimeWarning)
        test = ks_2samp(first, second, method=method)
    shift, unit = float(wasserstein_distance(first, second)), float(second.mean())
    return MisfitDistance(
        statistic=float(test.statistic),
        p_value=float(test.pvalue),
        wasserstein=shift,
        relative_wasserstein=shift / unit if unit > 0 else None,
    )


def membership(suspect_misfits: Numbers, fresh_misfits: Numbers) -> Membership:
    """Try to tell, by one model's misfits, the suspects from fresh readings with the same noise.

    The fresh readings must be drawn where the suspects are, with their noise, or else the test
    finds that difference instead of memory.

    >>> membership([0.1, 0.4], [0.2, 0.5]).auc
    0.75
    """
    from scipy.stats import mannwhitneyu

    seen = _misfits("suspect_misfits", suspect_misfits)
    fresh = _misfits("fresh_misfits", fresh_misfits)
    pooled = np.concatenate([seen, fresh])
    is_fresh = np.repeat([False, True], [seen.size, fresh.size])
    if np.ptp(pooled) == 0:
        return Membership(auc=0.5, advantage=0.0, p_value=1.0)
    auc = area_under_curve(pooled, is_fresh)
    thresholds = np.sort(pooled)
    accused_rightly = np.searchsorted(np.sort(seen), thresholds, side="right") / seen.size
    accused_wrongly = np.searchsorted(np.sort(fresh), thresholds, side="right") / fresh.size
    return Membership(
        auc=0.5 if auc is None else auc,
        advantage=float(np.max(accused_rightly - accused_wrongly)),
        p_value=float(mannwhitneyu(fresh, seen, alternative="greater").pvalue),
    )


def _membership_of(model: Evidence) -> Membership | None:
    if model.fresh_misfits is None:
        return None
    return membership(model.suspect_misfits, model.fresh_misfits)


def _misfits(name: str, values: Numbers) -> np.ndarray:
    array = numbers(name, values)
    if array.ndim != 1:
        raise UserError(f"{name} has shape {array.shape}; pass one magnitude for each reading.")
    if (array < 0).any():
        raise UserError(f"{name} has negative values; pass magnitudes, such as absolute residuals.")
    return array
