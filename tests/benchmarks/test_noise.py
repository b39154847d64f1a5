"""The errors of simulated readings: splits, kinds, and settings that are refused."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpinn._errors import UserError
from unpinn.benchmarks import BENCHMARKS, KINDS, Noise, benchmark

SEEDS = (42, 43, 44)
PLACES = np.random.default_rng(0).random((400, 2))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_split_is_the_permutation_of_the_seed(name, seed):
    bench = benchmark(name)
    drawn = bench.readings(seed)
    count = len(drawn.observations)
    order = np.random.default_rng(seed).permutation(count)
    bad = order[: round(bench.noise.share * count)]
    np.testing.assert_array_equal(np.flatnonzero(drawn.is_bad), np.sort(bad))


@pytest.mark.parametrize("name", ["heat", "stokes"])
def test_seeds_repeat_and_differ(name):
    first, again, other = (benchmark(name).readings(seed) for seed in (42, 42, 43))
    np.testing.assert_array_equal(first.observations.values, again.observations.values)
    assert not np.array_equal(first.observations.values, other.observations.values)
    assert not np.array_equal(first.is_bad, other.is_bad)
    np.testing.assert_array_equal(first.observations.points, other.observations.points)


def test_readings_are_truth_plus_error():
    bench = benchmark("stokes")
    drawn = bench.readings(42, Noise(0.0, 0.0, 0.5))
    truth = bench.truth(drawn.observations.points)
    np.testing.assert_array_equal(drawn.observations.values, drawn.clean)
    np.testing.assert_array_equal(drawn.clean, np.stack([truth["u"], truth["v"]], axis=1))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_method_sees_does_not_tell_the_split(kind):
    drawn = benchmark("wave").readings(42, Noise(0.7, 0.1, 0.2, kind))
    seen = drawn.observations
    assert seen.sigma is None
    assert {f.name for f in dataclasses.fields(seen)} == {
        "points", "values", "quantities", "sigma", "sensor"
    }  # fmt: skip
    assert (seen.sensor is not None) == (kind == "clustered")
    if seen.sensor is not None:
        # An instrument's number follows from its place alone.
        x = seen.points[:, 0]
        assert all(len(np.unique(x[seen.sensor == s])) == 1 for s in np.unique(seen.sensor))


def test_components_of_a_reading_err_independently():
    errors = Noise(1.0, 0.1, 0.5).draw(np.zeros((20_000, 1)), 2, seed=1).values
    assert abs(np.corrcoef(errors.T)[0, 1]) < 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_keeps_its_levels_and_share(kind):
    places = np.random.default_rng(0).random((20_000, 1))
    drawn = Noise(2.0, 0.1, 0.3, kind).draw(places, 1, seed=5)
    assert drawn.is_bad.sum() == 6_000
    bad, good = drawn.values[drawn.is_bad], drawn.values[~drawn.is_bad]
    # Student's t with three degrees of freedom has no fourth moment: its mean square is unsteady.
    assert np.sqrt(np.mean(bad**2)) == pytest.approx(2.0, rel=0.15 if kind == "student" else 0.05)
    assert good.std() == pytest.approx(0.1, rel=0.05)
    np.testing.assert_array_equal(drawn.sigma, np.where(drawn.is_bad, 2.0, 0.1))


def test_student_errors_have_heavy_tails():
    draw = {k: Noise(1.0, 0.0, 1.0, k).draw(np.zeros((50_000, 1)), 1, 3).values.ravel()
            for k in ("gaussian", "student")}  # fmt: skip
    beyond = {kind: np.mean(np.abs(errors) > 4) for kind, errors in draw.items()}
    assert beyond["student"] > 20 * max(beyond["gaussian"], 1e-4)
    assert np.median(np.abs(draw["student"])) < 0.8 * np.median(np.abs(draw["gaussian"]))


def test_biased_errors_go_one_way():
    drawn = Noise(1.0, 0.1, 0.4, "biased").draw(PLACES, 2, seed=3)
    assert (drawn.values[drawn.is_bad] >= 0).all()
    assert drawn.values[drawn.is_bad].mean() == pytest.approx(math.sqrt(2 / math.pi), abs=0.1)
    good = drawn.values[~drawn.is_bad]
    assert 0.4 < np.mean(good > 0) < 0.6


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "places", "broken"), [("heat", 20, 8), ("wave", 20, 4), ("hinv", 100, 60)]
)
def test_clustered_noise_breaks_whole_instruments(name, places, broken, seed):
    bench = benchmark(name)
    drawn = bench.readings(seed, dataclasses.replace(bench.noise, kind="clustered"))
    sensor = drawn.observations.sensor
    shares = [drawn.is_bad[sensor == s].mean() for s in np.unique(sensor)]
    assert len(shares) == places
    assert sorted(shares) == [0.0] * (places - broken) + [1.0] * broken


@pytest.mark.parametrize("seed", SEEDS)
def test_clustered_noise_lies_together(seed):
    bench = benchmark("pinv")
    share = 0.2
    points = bench.reading_points()
    near = {}
    for kind in ("gaussian", "clustered"):
        bad = bench.readings(seed, Noise(1.0, 0.1, share, kind)).is_bad
        on_grid = bad.reshape(50, 50)
        near[kind] = (on_grid[1:] & on_grid[:-1]).sum() / bad.sum()
    assert near["gaussian"] < 0.3
    assert near["clustered"] > 0.85
    assert len(points) == 2500


def test_clustered_noise_with_a_broken_part_of_an_instrument_keeps_the_count():
    points = np.repeat(np.arange(7.0), 10)[:, None]
    drawn = Noise(1.0, 0.1, 0.5, "clustered").draw(points, 1, seed=0)
    shares = drawn.is_bad.reshape(7, 10).mean(axis=1)
    assert drawn.is_bad.sum() == 35
    assert sorted(shares) == [0, 0, 0, 0.5, 1, 1, 1]


@given(
    share=st.floats(0, 1),
    count=st.integers(1, 60),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_share_of_any_count_is_kept(share, count, kind, seed):
    places = np.random.default_rng(seed).integers(0, 5, (count, 2)).astype(float)
    drawn = Noise(1.0, 0.5, share, kind).draw(places, 2, seed)
    assert drawn.is_bad.sum() == round(share * count)
    assert drawn.values.shape == (count, 2) and np.isfinite(drawn.values).all()


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        ({"high": -1.0}, "low <= high"),
        ({"low": -0.1}, "low <= high"),
        ({"high": 0.05}, "low <= high"),
        ({"high": math.inf}, "high"),
        ({"low": math.nan}, "low"),
        ({"share": 1.5}, "share"),
        ({"share": -0.1}, "share"),
        ({"kind": "gausian"}, "did you mean 'gaussian'"),
        ({"kind": ""}, "kind ''"),
    ],
)
def test_impossible_noise_is_refused(settings, culprit):
    with pytest.raises(UserError, match=culprit) as caught:
        Noise(**{"high": 1.0, "low": 0.1, "share": 0.5, **settings})
    assert "\n" not in str(caught.value)


def test_noise_says_what_it_is():
    assert str(Noise(1.0, 0.1, 0.6)) == "gaussian, 60% at 1 and the rest at 0.1"
