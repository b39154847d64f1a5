"""The composite score: misfit and residual in one number a reading."""

from __future__ import annotations

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.unlearning import Scores


def test_a_case_done_by_hand():
    scores = Scores(np.array([[3.0, -4.0], [0.0, 1.0]]), np.array([[2.0], [-7.0]]), 0.5)
    assert scores.misfit.tolist() == [5.0, 1.0]
    assert scores.residual.tolist() == [2.0, 7.0]
    assert scores.score.tolist() == [6.0, 4.5]


def test_the_paper_s_weight_of_the_residual():
    assert Scores(np.zeros((1, 1)), np.array([[3.0, 4.0]])).score.tolist() == [0.005]


def test_a_missing_quantity_counts_for_nothing():
    scores = Scores(np.array([[np.nan, -2.0], [1.0, np.nan]]), np.zeros((2, 1)))
    assert scores.misfit.tolist() == [2.0, 1.0]


def test_scores_of_some_readings_keep_their_weight():
    scores = Scores(np.arange(4.0)[:, None], np.ones((4, 2)), 0.25)
    some = scores.take(np.array([True, False, False, True]))
    np.testing.assert_array_equal(some.score, scores.score[[0, 3]])


@pytest.mark.parametrize(
    ("misfits", "residuals", "weight", "words"),
    [
        (np.zeros((3, 1)), np.zeros((2, 1)), 0.1, "3 misfits but 2 residuals"),
        (np.zeros((2, 1)), np.zeros((2, 1)), -0.1, "zero or more"),
        (np.zeros((2, 1)), np.zeros((2, 1)), float("nan"), "zero or more"),
        (np.zeros((2, 1)), np.array([[0.0], [np.nan]]), 0.1, "not finite at some reading"),
        (np.zeros((2, 1)), np.array([[0.0], [np.inf]]), 0.1, "not finite at some reading"),
    ],
)
def test_scores_that_make_no_sense_are_refused(misfits, residuals, weight, words):
    with pytest.raises(UserError, match=words):
        Scores(misfits, residuals, weight)
