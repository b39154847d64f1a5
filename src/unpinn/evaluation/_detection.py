"""How well the bad readings were found."""

from dataclasses import dataclass

import numpy as np

from unpinn._errors import UserError
from unpinn.evaluation._checks import Numbers, mask, numbers


@dataclass(frozen=True)
class Confusion:
    """A partition against the true split; positive means called suspect, true means rightly so."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int


@dataclass(frozen=True)
class Detection:
    """How well bad readings were told from good ones.

    `auc` is None without scores or when all readings are bad or all are good; `confusion` is None
    without a partition; `precision` is None when nothing was called suspect and `recall` when
    nothing is bad, for then neither exists.
    """

    readings: int
    bad: int
    suspects: int | None
    auc: float | None
    precision: float | None
    recall: float | None
    confusion: Confusion | None


def detection(scores: Numbers | None, is_bad: Numbers, suspect: Numbers | None = None) -> Detection:
    """Judge suspicion scores, a partition, or both, against the true split.

    Arguments:
        scores: one number for each reading, larger meaning more suspect; None if there is none.
        is_bad: the true split, one boolean for each reading.
        suspect: the partition, one boolean for each reading.

    >>> found = detection([0.1, 0.9, 0.4, 0.8], [False, True, False, True], [0, 1, 1, 1])
    >>> found.auc, found.recall, found.confusion.false_positives
    (1.0, 1.0, 1)
    """
    if scores is None and suspect is None:
        raise UserError("scores and suspect are both missing; pass at least one of them to judge.")
    truth = np.asarray(is_bad)
    if truth.ndim != 1 or truth.size == 0:
        raise UserError(f"is_bad has shape {truth.shape}; pass one boolean for each reading.")
    bad = mask("is_bad", truth, truth.size)
    confusion = None if suspect is None else _confusion(mask("suspect", suspect, bad.size), bad)
    precision = recall = suspects = None
    if confusion is not None:
        suspects = confusion.true_positives + confusion.false_positives
        precision = confusion.true_positives / suspects if suspects else None
        recall = confusion.true_positives / int(bad.sum()) if bad.any() else None
    return Detection(
        readings=bad.size,
        bad=int(bad.sum()),
        suspects=suspects,
        auc=None if scores is None else area_under_curve(scores, bad),
        precision=precision,
        recall=recall,
        confusion=confusion,
    )


def area_under_curve(scores: Numbers, is_bad: Numbers) -> float | None:
    r"""Area under the ROC curve: the chance that a bad reading outscores a good one.

    By the ranks of the scores (Mann and Whitney), ties counting one half,

    $$(R - n_b (n_b + 1) / 2) / (n_b n_g),$$

    with R the sum of the ranks of the bad readings. Infinite scores are ranked like any other.
    None when one of the classes is empty.

    >>> area_under_curve([1.0, 2.0, 2.0], [False, True, False])
    0.75
    """
    from scipy.stats import rankdata

    values = numbers("scores", scores, allow_infinite=True)
    if values.ndim != 1:
        raise UserError(f"scores has shape {values.shape}; pass one score for each reading.")
    bad = mask("is_bad", is_bad, values.size)
    number_bad = int(bad.sum())
    number_good = bad.size - number_bad
    if number_bad == 0 or number_good == 0:
        return None
    rank_sum = float(rankdata(values)[bad].sum())
    return (rank_sum - number_bad * (number_bad + 1) / 2) / (number_bad * number_good)


def _confusion(suspect: np.ndarray, bad: np.ndarray) -> Confusion:
    return Confusion(
        true_positives=int(np.sum(suspect & bad)),
        false_positives=int(np.sum(suspect & ~bad)),
        false_negatives=int(np.sum(~suspect & bad)),
        true_negatives=int(np.sum(~suspect & ~bad)),
    )
