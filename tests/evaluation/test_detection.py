"""Exact cases and laws of the detection of bad readings."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_score, recall_score, roc_auc_score

from unpinn._errors import UserError
from unpinn.evaluation import Confusion, area_under_curve, detection

# Few distinct values, so that ties are common.
READINGS = st.lists(
    st.tuples(st.integers(-6, 6).map(float), st.booleans(), st.booleans()), min_size=1, max_size=40
).map(lambda rows: [np.array(column) for column in zip(*rows, strict=True)])


def test_a_case_done_by_hand():
    found = detection(
        scores=[0.9, 0.8, 0.3, 0.8, 0.1],
        is_bad=[True, True, False, False, False],
        suspect=[True, False, False, True, False],
    )
    assert found.auc == pytest.approx(5.5 / 6)
    assert found.confusion == Confusion(1, 1, 1, 2)
    assert (found.precision, found.recall) == (0.5, 0.5)
    assert (found.readings, found.bad, found.suspects) == (5, 2, 2)


@given(READINGS)
def test_agreement_with_scikit_learn(readings):
    scores, bad, suspect = readings
    found = detection(scores, bad, suspect)
    if bad.any() and not bad.all():
        assert found.auc == pytest.approx(roc_auc_score(bad, scores))
    if bad.any():
        assert found.recall == pytest.approx(recall_score(bad, suspect))
    if suspect.any():
        assert found.precision == pytest.approx(precision_score(bad, suspect))


@given(READINGS)
def test_a_missing_class_has_a_defined_outcome(readings):
    scores, bad, suspect = readings
    found = detection(scores, bad, suspect)
    assert (found.auc is None) == (bad.all() or not bad.any())
    assert (found.recall is None) == (not bad.any())
    assert (found.precision is None) == (not suspect.any())
    json.dumps(dataclasses.asdict(found), allow_nan=False)


@given(READINGS)
def test_the_area_knows_only_the_order(readings):
    scores, bad, _ = readings
    area = area_under_curve(scores, bad)
    for increasing in (lambda s: 3 * s - 7, lambda s: s**3, np.exp, np.arctan):
        assert area_under_curve(increasing(scores), bad) == area
    with np.errstate(divide="ignore"):
        assert area_under_curve(np.where(scores == 6, np.inf, scores), bad) == area


@given(READINGS)
def test_reversing_scores_or_classes_reflects_the_area(readings):
    scores, bad, _ = readings
    area = area_under_curve(scores, bad)
    if area is not None:
        assert area_under_curve(-scores, bad) == pytest.approx(1 - area)
        assert area_under_curve(scores, ~bad) == pytest.approx(1 - area)
        assert area_under_curve(-scores, ~bad) == pytest.approx(area)


@given(READINGS)
def test_swapping_split_and_partition_swaps_precision_and_recall(readings):
    _, bad, suspect = readings
    found, swapped = detection(None, bad, suspect), detection(None, suspect, bad)
    assert (found.precision, found.recall) == (swapped.recall, swapped.precision)
    assert found.confusion.false_positives == swapped.confusion.false_negatives
    assert sum(dataclasses.astuple(found.confusion)) == found.readings == bad.size


def test_a_partition_of_zeros_and_ones_is_a_mask():
    assert detection(None, [0, 1, 1], [0, 1, 0]).recall == 0.5


@pytest.mark.parametrize(
    ("scores", "bad", "suspect", "sentence"),
    [
        (None, [True], None, "both missing"),
        ([np.nan, 1.0], [True, False], None, "1 of 2 values NaN"),
        ([1.0], [True, False], None, "pass one boolean for each of the 1 readings"),
        ([[1.0, 2.0]], [True, False], None, "one score for each"),
        ([1.0, 2.0], [True, False], [0, 2], "boolean mask"),
        ([1.0, 2.0], [True, False], [1], "each of the 2 readings"),
        ([1.0, 2.0], [0.5, 1.0], None, "is_bad has values other than"),
        (None, [], [], "is_bad has shape"),
    ],
)
def test_bad_input_is_refused_by_name(scores, bad, suspect, sentence):
    with pytest.raises(UserError, match=sentence):
        detection(scores, bad, suspect)
