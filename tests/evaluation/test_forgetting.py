"""Exact cases and laws of the measures of forgetting."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpinn._errors import UserError
from unpinn.evaluation import (
    Evidence,
    area_under_curve,
    forget_quality,
    membership,
    misfit_distance,
    prediction_distance,
    unknown_distances,
)

MISFITS = st.lists(st.integers(0, 20).map(lambda value: value / 4), min_size=1, max_size=30).map(
    np.array
)


@given(MISFITS)
def test_a_model_is_at_no_distance_from_itself(misfits):
    evidence = Evidence(misfits + 1, misfits, misfits, {"c": 2.0, "a": misfits + 1})
    quality = forget_quality(evidence, evidence)
    assert quality.predictions == 0
    assert quality.unknowns == {"c": 0.0, "a": 0.0}
    assert (quality.misfits.statistic, quality.misfits.wasserstein) == (0, 0)
    assert quality.misfits.p_value == pytest.approx(1)
    assert quality.membership.auc == 0.5
    assert quality.membership.advantage == 0
    json.dumps(dataclasses.asdict(quality), allow_nan=False)


@given(MISFITS, MISFITS)
def test_distances_of_misfits_are_symmetric(first, second):
    one, other = misfit_distance(first, second), misfit_distance(second, first)
    assert one.statistic == pytest.approx(other.statistic)
    assert one.p_value == pytest.approx(other.p_value)
    assert one.wasserstein == pytest.approx(other.wasserstein)


@given(MISFITS, st.integers(0, 8).map(float))
def test_the_wasserstein_distance_of_a_shift_is_the_shift(misfits, shift):
    distance = misfit_distance(misfits + shift, misfits)
    assert distance.wasserstein == pytest.approx(shift)
    if misfits.any():
        assert distance.relative_wasserstein == pytest.approx(shift / misfits.mean())
    else:
        assert distance.relative_wasserstein is None


@given(MISFITS, MISFITS)
def test_the_statistic_is_the_largest_gap_of_the_distribution_functions(first, second):
    at = np.union1d(first, second)[:, None]
    gap = np.abs((first <= at).mean(axis=1) - (second <= at).mean(axis=1)).max()
    assert misfit_distance(first, second).statistic == pytest.approx(gap)


@given(MISFITS, MISFITS)
def test_exchanging_suspects_and_fresh_readings_reflects_the_area(seen, fresh):
    forward, backward = membership(seen, fresh), membership(fresh, seen)
    assert forward.auc == pytest.approx(1 - backward.auc)
    # A threshold with advantage d leaves the curve under its convex envelope through d.
    assert forward.auc <= 0.5 + forward.advantage - forward.advantage**2 / 2 + 1e-12
    assert 0 <= forward.advantage <= 1
    assert 0 <= forward.p_value <= 1


@given(MISFITS, MISFITS)
def test_membership_knows_only_the_order(seen, fresh):
    plain, squared = membership(seen, fresh), membership(seen**2, fresh**2)
    assert plain.auc == squared.auc
    assert plain.advantage == squared.advantage
    is_fresh = np.r_[np.zeros(seen.size, bool), np.ones(fresh.size, bool)]
    assert plain.auc == area_under_curve(np.r_[seen, fresh], is_fresh)


def test_a_memorised_sample_is_betrayed_and_a_forgotten_one_is_not():
    rng = np.random.default_rng(4)
    seen, fresh = np.abs(rng.normal(size=(2, 400)))
    forgotten, memorised = membership(seen, fresh), membership(0.3 * seen, fresh)
    assert abs(forgotten.auc - 0.5) < 0.06 and forgotten.p_value > 0.01
    assert memorised.auc > 0.75 and memorised.p_value < 1e-6 and memorised.advantage > 0.4


def test_the_retrained_model_is_judged_beside_the_unlearned_one():
    rng = np.random.default_rng(5)
    fields, noise, fresh = rng.normal(size=(3, 300))
    unlearned = Evidence(1.1 * fields, 0.2 * np.abs(noise), np.abs(fresh), {"c": 2.2})
    retrained = Evidence(fields, np.abs(noise), np.abs(fresh), {"c": 2.0})
    quality = forget_quality(unlearned, retrained)
    assert quality.predictions == pytest.approx(0.1)
    assert quality.unknowns["c"] == pytest.approx(0.1)
    assert quality.misfits.relative_wasserstein == pytest.approx(0.8)
    assert quality.misfits.p_value < 1e-6
    assert quality.membership.auc > 0.75 > quality.membership_retrained.auc


def test_large_samples_are_compared_by_the_asymptotic_law():
    rng = np.random.default_rng(6)
    first, second = np.abs(rng.normal(size=(2, 6000)))
    assert 0.001 < misfit_distance(first, second).p_value < 1
    assert misfit_distance(first, 1.2 * second).p_value < 1e-6


def test_without_fresh_readings_there_is_no_membership():
    evidence = Evidence([1.0], [1.0])
    quality = forget_quality(evidence, evidence)
    assert quality.membership is None and quality.membership_retrained is None
    assert quality.unknowns == {}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: misfit_distance([-1.0], [1.0]), "unlearned misfits has negative values"),
        (lambda: misfit_distance([1.0], []), "retrained misfits is empty"),
        (lambda: membership([[1.0]], [1.0]), "one magnitude for each reading"),
        (lambda: membership([1.0], [np.nan]), "fresh_misfits has 1 of 1"),
        (lambda: unknown_distances({"a": 1.0}, {"b": 1.0}), "unknowns a, b belong to one"),
        (lambda: unknown_distances({"a": [1.0, 2.0]}, {"a": 1.0}), "retrained a has shape"),
        (lambda: prediction_distance([1.0], [1.0, 2.0]), "retrained predictions has shape"),
    ],
)
def test_bad_input_is_refused_by_name(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()
