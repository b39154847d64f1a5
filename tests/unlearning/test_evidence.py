"""What a user can see of two fits: likelihood of the readings, residual at fresh points."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import numpy as np
import pytest

from unpinn.problem import Sobol
from unpinn.unlearning import Evidence, compare_evidence, fit_mixture, fresh_residual, log_densities


@pytest.mark.parametrize(
    ("gain", "error", "before", "after", "accepts"),
    [
        (0.1, 0.01, 0.2, 0.2, True),
        (-0.1, 0.06, 0.2, 0.2, True),  # a loss within chance
        (-0.1, 0.04, 0.2, 0.2, False),  # and one beyond
        (1.0, 0.01, 0.2, 0.39, True),  # a residual that has grown, but not to twice
        (1.0, 0.01, 0.2, 0.41, False),
        (1.0, 0.01, 0.0, 0.049, True),  # too small to argue about
        (1.0, 0.01, 0.0, 0.051, False),
        (1.0, 0.01, 0.2, float("nan"), False),
        (1.0, 0.01, float("inf"), float("inf"), False),
        (float("nan"), 0.01, 0.2, 0.2, False),
        (-5.0, float("inf"), 0.2, 0.2, True),  # one reading tells nothing
        (-0.0029, 0.0001, 0.2, 0.2, True),  # a sure loss, but of less than three nats in all
        (-0.0031, 0.0001, 0.2, 0.2, False),
    ],
)
def test_what_is_accepted(gain, error, before, after, accepts):
    assert Evidence(gain, error, before, after, False, 1000).accepts is accepts


def test_a_smaller_network_may_follow_the_readings_less_far_but_not_where_they_were_held_out():
    told = {"residual_before": 0.1, "residual_after": 0.1, "readings": 1000}
    for gain, spared in ((-0.1, True), (-0.29, True), (-0.41, False)):
        evidence = Evidence(gain, 0.1, held_out=False, **told)
        assert evidence.spares is spared and evidence.accepts is (gain > -0.2)
        assert Evidence(gain, 0.1, held_out=True, **told).spares is (gain > -0.2)
    worse = {**told, "residual_after": 0.3}
    assert not Evidence(1.0, 0.1, held_out=False, **worse).spares


def spoilt(fit, amount: float):
    """The same fit with its output moved."""
    bias = lambda m: m.network.output.bias  # noqa: E731
    return replace(fit, model=eqx.tree_at(bias, fit.model, replace_fn=lambda b: b + amount))


def test_a_fit_is_as_good_as_itself(world):
    found = compare_evidence(world.noisy, world.noisy)
    assert (found.gain, found.error) == (0.0, 0.0) and not found.held_out
    assert found.residual_before == found.residual_after


def test_a_worse_fit_is_seen_to_be_worse_and_a_better_one_better(world):
    worse = spoilt(world.noisy, 1.0)
    there, back = compare_evidence(world.noisy, worse), compare_evidence(worse, world.noisy)
    assert there.gain < -5 * there.error and not there.accepts
    assert back.gain == -there.gain and back.error == there.error


def test_the_gain_is_the_mean_difference_of_log_likelihoods(world):
    other = spoilt(world.noisy, 0.05)
    sides = [fit.misfits() for fit in (world.noisy, other)]
    before, after = (log_densities(m, fit_mixture(m).noise) for m in sides)
    found = compare_evidence(world.noisy, other)
    assert found.gain == pytest.approx((after - before).mean())
    assert found.error == pytest.approx((after - before).std(ddof=1) / np.sqrt(60))


def test_held_out_readings_alone_are_judged_where_there_are_any(world):
    rows = [3, 10, 11, 40, 52]
    before, after = (fit.with_details(held_out=rows) for fit in
                     (world.noisy, spoilt(world.noisy, 0.3)))  # fmt: skip
    found = compare_evidence(before, after)
    judged = np.isin(np.arange(60), rows)
    gains = []
    for fit in (before, after):
        misfits = fit.misfits()
        gains.append(log_densities(misfits[judged], fit_mixture(misfits[~judged]).noise))
    assert found.held_out and found.gain == pytest.approx((gains[1] - gains[0]).mean())
    assert found.error == pytest.approx((gains[1] - gains[0]).std(ddof=1) / np.sqrt(5))


def test_one_held_out_reading_proves_nothing(world):
    before = world.noisy.with_details(held_out=[3])
    found = compare_evidence(before, spoilt(before, 1.0))
    assert found.error == float("inf")


def test_the_residual_is_in_units_of_its_equation_and_at_points_of_its_own(world):
    fit = world.noisy
    points = Sobol(1024).draw(world.problem.coordinates, 7_919)
    for size in (1.0, 4.0):
        expected = np.sqrt(np.mean((fit.residual(points) / size) ** 2))
        assert fresh_residual(fit, {"decay": size}) == pytest.approx(expected)
    assert fresh_residual(fit, {}) == fresh_residual(fit, {"decay": 1.0})
