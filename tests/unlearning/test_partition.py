"""Retained and suspect: by a share, by a threshold, by evidence; held-out readings only listen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpinn._errors import UserError
from unpinn.unlearning import ByMixture, ByShare, ByThreshold, Rule, Scores, posterior_of
from unpinn.unlearning._partition import part, rows

MISFITS = arrays(float, st.integers(1, 60), elements=st.floats(0, 9))


def told(misfits) -> Scores:
    misfits = np.asarray(misfits, float)
    return Scores(misfits[:, None], np.zeros((len(misfits), 1)))


@pytest.fixture
def two_kinds() -> Scores:
    """Two hundred misfits, of which every fourth is twenty times as large."""
    random = np.random.default_rng(0)
    noise = np.where(np.arange(200) % 4 == 0, 2.0, 0.1)
    return Scores(noise[:, None] * random.standard_normal((200, 1)), random.random((200, 1)))


# -- a share ----------------------------------------------------------------------------------


@given(misfits=MISFITS, share=st.floats(1e-3, 1.0))
def test_a_share_is_exact_and_takes_the_best(misfits, share):
    found = ByShare(share)(told(misfits))
    assert found.retained.sum() == max(1, round(share * len(misfits)))
    assert found.score[found.retained].max() <= found.score[found.suspect].min(initial=np.inf)
    np.testing.assert_array_equal(found.weight, found.retained.astype(float))
    assert found.posterior is None and found.noise is None


def test_ties_are_settled_by_order():
    assert ByShare(0.5)(told([1, 1, 1, 1])).retained.tolist() == [True, True, False, False]


def test_the_threshold_is_the_score_from_which_on_readings_are_suspect():
    assert ByShare(0.5)(told([4, 1, 3, 2])).threshold == 3.0
    assert ByShare(1.0)(told([4, 1])).threshold == float("inf")


def test_the_residual_has_a_say_in_the_score():
    scores = Scores(np.array([[1.0], [1.1]]), np.array([[9.0], [0.0]]), 0.1)
    assert ByShare(0.5)(scores).retained.tolist() == [False, True]


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, float("nan")])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(UserError, match=r"must be in \(0, 1\]"):
        ByShare(share)


# -- a threshold ------------------------------------------------------------------------------


def test_a_threshold_is_strict():
    found = ByThreshold(2.0)(told([1.0, 2.0, 3.0]))
    assert found.retained.tolist() == [True, False, False] and found.threshold == 2.0


def test_a_threshold_that_leaves_nothing_names_the_smallest_score():
    with pytest.raises(UserError, match=r"below 0.5 \(the smallest score is 1\); raise"):
        ByThreshold(0.5)(told([1.0, 2.0]))


# -- evidence ---------------------------------------------------------------------------------


def test_a_mixture_finds_the_bad_readings_without_a_number(two_kinds):
    found = ByMixture()(two_kinds)
    bad = np.arange(200) % 4 == 0
    assert (found.suspect & ~bad).sum() == 0 and (found.suspect & bad).sum() >= 45
    assert found.noise.components == 2
    np.testing.assert_array_equal(found.retained, found.posterior < 0.5)
    # Every reading at or under the bound is retained, every one above it suspect.
    np.testing.assert_array_equal(found.retained, found.misfit <= found.threshold)


def test_soft_weights_are_expected_precisions(two_kinds):
    found = ByMixture()(two_kinds)
    ratio = (found.noise.low / found.noise.high) ** 2
    np.testing.assert_allclose(found.weight, 1 - found.posterior * (1 - ratio))
    assert found.weight.min() == pytest.approx(ratio) and 0 < ratio < 0.01


def test_hard_weights_are_ones_and_zeros(two_kinds):
    found = ByMixture(soft=False)(two_kinds)
    np.testing.assert_array_equal(found.weight, found.retained.astype(float))


def test_a_lower_cut_retains_fewer(two_kinds):
    strict, usual, lax = (ByMixture(cut=cut)(two_kinds).retained for cut in (0.01, 0.5, 1.0))
    assert strict.sum() < usual.sum() < lax.sum()
    assert not (strict & ~usual).any() and not (usual & ~lax).any()


def test_something_is_always_retained(two_kinds):
    # No reading is so surely good, but the likeliest one has to stay.
    found = ByMixture(cut=1e-12)(two_kinds)
    assert found.retained.sum() == 1 and found.posterior[found.retained] == found.posterior.min()


def test_of_clean_readings_none_is_forgotten():
    clean = Scores(np.random.default_rng(0).standard_normal((200, 1)), np.zeros((200, 1)))
    found = ByMixture()(clean)
    assert found.retained.all() and (found.weight == 1).all() and not found.posterior.any()
    assert found.noise.components == 1 and "nothing to forget" in found.rule
    assert found.threshold == float("inf")


@pytest.mark.parametrize("cut", [0.0, -1.0, 1.5, float("nan")])
def test_an_impossible_cut_is_refused(cut):
    with pytest.raises(UserError, match="posterior to cut at"):
        ByMixture(cut=cut)


# -- readings held out ------------------------------------------------------------------------

RULES = {"share": ByShare(0.7), "threshold": ByThreshold(0.3), "mixture": ByMixture()}


@pytest.mark.parametrize("name", RULES)
def test_held_out_readings_have_no_say(name, two_kinds):
    seen = np.arange(200) % 5 != 0
    found = part(two_kinds, RULES[name], seen)
    moved = Scores(np.where(seen[:, None], two_kinds.misfits, 50.0), two_kinds.residuals)
    other = part(moved, RULES[name], seen)
    alone = RULES[name](two_kinds.take(seen))
    for one in (found, other):
        np.testing.assert_array_equal(one.retained[seen], alone.retained)
        np.testing.assert_array_equal(one.weight[seen], alone.weight)
        assert (one.weight[~seen] == 0).all() and one.threshold == alone.threshold
    # They are judged all the same: what is that far off is suspect.
    assert other.suspect[~seen].all() and found.retained[~seen].any()


def test_a_held_out_reading_is_judged_by_the_noise_that_the_others_show(two_kinds):
    seen = np.arange(200) % 5 != 0
    found = part(two_kinds, ByMixture(), seen)
    np.testing.assert_array_equal(found.posterior, posterior_of(two_kinds.misfits, found.noise))
    np.testing.assert_array_equal(found.retained, found.posterior < 0.5)


def test_with_nothing_held_out_the_rule_alone_decides(two_kinds):
    everything = np.ones(200, bool)
    whole, plain = part(two_kinds, ByMixture(), everything), ByMixture()(two_kinds)
    np.testing.assert_array_equal(whole.weight, plain.weight)


def test_the_rows_of_a_partition_are_those_of_its_readings(two_kinds):
    seen = np.arange(200) % 5 != 0
    found = part(two_kinds, ByMixture(), seen)
    some = rows(found, seen)
    for name in ("misfit", "residual", "score", "retained", "weight", "posterior"):
        np.testing.assert_array_equal(getattr(some, name), getattr(found, name)[seen])
    assert (some.threshold, some.rule, some.noise) == (found.threshold, found.rule, found.noise)
    assert rows(ByShare(0.5)(two_kinds), seen).posterior is None


# -- a rule of one's own ----------------------------------------------------------------------


def test_any_function_of_scores_is_a_rule(two_kinds, halves):
    def every_second(scores: Scores):
        return halves(np.arange(len(scores.misfits)) % 2 == 0)

    assert isinstance(every_second, Rule)
    assert part(two_kinds, every_second, np.ones(200, bool)).retained.sum() == 100
