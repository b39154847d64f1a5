"""Forget quality of fits: nothing between a fit and itself, and a memory where there is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.rivals import forgetting, redrawn


@pytest.fixture
def suspects(world):
    partition = world.fit("rt", "inversion").partition
    assert partition.suspect.any()
    return partition.suspect


def test_a_retrained_fit_is_at_no_distance_from_itself(world):
    fit = world.fit("rt", "inversion")
    quality = forgetting(fit, fit, world.observations.points)
    assert quality.predictions == 0.0 and quality.unknowns == {"k": 0.0}
    assert quality.misfits.statistic == 0.0 and quality.membership is None


def test_distances_are_those_of_the_two_fits(world, suspects):
    unlearned, retrained = world.fit("ppinn", "inversion"), world.fit("rt", "inversion")
    points = world.observations.points
    clean = np.exp(-points)[suspects]
    part = world.observations.take(suspects)
    fresh = redrawn(part, clean, world.sigma[suspects], seed=9)
    quality = forgetting(unlearned, retrained, points, fresh)
    first, second = (fit.predict(points)["u"] for fit in (unlearned, retrained))
    expected = np.linalg.norm(first - second) / np.linalg.norm(second)
    assert quality.predictions == pytest.approx(expected)
    far = abs(unlearned.unknowns["k"] / retrained.unknowns["k"] - 1)
    assert quality.unknowns["k"] == pytest.approx(far)
    shift = np.abs(np.sort(np.abs(unlearned.misfits(part)[:, 0])))
    shift = np.mean(np.abs(shift - np.sort(np.abs(retrained.misfits(part)[:, 0]))))
    assert quality.misfits.wasserstein == pytest.approx(shift)
    assert 0 <= quality.membership.auc <= 1 and quality.membership_retrained is not None


def test_readings_drawn_anew_have_their_own_errors(world):
    clean = np.exp(-world.observations.points)
    first = redrawn(world.observations, clean, world.sigma, seed=1)
    again = redrawn(world.observations, clean, world.sigma, seed=1)
    np.testing.assert_array_equal(first.values, again.values)
    assert (first.values != world.observations.values).all()
    spread = (first.values - clean)[:, 0] / world.sigma
    assert 0.5 < spread.std() < 1.5


def test_misuse_is_one_sentence(world):
    retrained, points = world.fit("rt", "inversion"), world.observations.points
    with pytest.raises(UserError, match="left out no reading"):
        forgetting(retrained, world.fit("pinn", "inversion"), points)
    other = replace(world.observations, values=world.observations.values + 1.0)
    strange = replace(world.fit("ppinn", "inversion"), observations=other)
    with pytest.raises(UserError, match="different readings"):
        forgetting(strange, retrained, points)
