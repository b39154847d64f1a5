"""Counts, layouts, noise, grids and protocols of every benchmark, as specified."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from unpinn.benchmarks import BENCHMARKS, PRESETS, GridRows, benchmark
from unpinn.training import Adam, Lbfgs

HALF = np.sqrt(0.5)


class Row(NamedTuple):
    readings: int
    collocation: int
    boundary: int
    initial: int
    high: float
    low: float
    share: float
    physics: float


SETTINGS = {
    ("pinv", "paper"): Row(2500, 8192, 2048, 0, 1.0, 0.1, 0.6, 0.005),
    ("hinv", "paper"): Row(2500, 8192, 2048, 2048, 1.0, 0.1, 0.6, 0.005),
    ("nsinv", "paper"): Row(10000, 2000, 0, 0, HALF, 0.1, 0.6, 0.005),
    ("ebinv", "paper"): Row(10000, 2000, 100, 200, 1.0, 0.1, 0.6, 0.005),
    ("winv", "paper"): Row(10000, 2000, 100, 200, 1.0, 0.1, 0.6, 0.005),
    ("poisson", "paper"): Row(225, 175, 0, 0, 1.0, 0.01, 0.2, 0.005),
    ("heat", "paper"): Row(400, 320, 80, 0, HALF, 0.1, 0.4, 0.005),
    ("heat-forced", "paper"): Row(400, 320, 80, 0, HALF, 0.1, 0.4, 0.005),
    ("wave", "paper"): Row(1200, 2160, 240, 0, HALF, 0.1, 0.2, 0.005),
    ("stokes", "paper"): Row(320, 1280, 0, 0, HALF, 0.1, 0.2, 0.005),
    ("pinv", "released"): Row(2500, 8192, 2048, 0, 1.0, 0.01, 0.6, 0.001),
    ("hinv", "released"): Row(2500, 8192, 2048, 2048, 1.0, 0.01, 0.6, 0.01),
    ("nsinv", "released"): Row(10000, 2000, 0, 0, 0.5, 0.01, 0.6, 0.05),
    ("ebinv", "released"): Row(5000, 2000, 100, 200, 0.5, 0.01, 0.6, 0.1),
    ("winv", "released"): Row(10000, 2000, 100, 200, 1.0, 0.01, 0.6, 0.1),
    ("poisson", "released"): Row(225, 175, 0, 0, 0.5, 0.01, 0.2, 0.005),
    ("heat", "released"): Row(400, 320, 80, 0, 0.5, 0.01, 0.4, 0.005),
    ("heat-forced", "released"): Row(400, 320, 80, 0, 0.5, 0.01, 0.4, 0.005),
    ("wave", "released"): Row(1340, 2160, 100, 0, 1.0, 0.01, 0.2, 0.005),
    ("stokes", "released"): Row(300, 1280, 0, 0, 0.5, 0.01, 0.2, 0.001),
}
ALL = [(name, preset) for name in BENCHMARKS for preset in PRESETS]
ASSIMILATION = {"poisson", "heat", "heat-forced", "wave", "stokes"}


def test_the_table_has_every_benchmark_in_both_presets():
    assert set(SETTINGS) == set(ALL)
    assert len(BENCHMARKS) == 10


@pytest.mark.parametrize(("name", "preset"), ALL)
def test_counts(name, preset):
    row, bench = SETTINGS[name, preset], benchmark(name, preset)
    assert bench.counts() == {
        "readings": row.readings,
        "collocation": row.collocation,
        "boundary": row.boundary,
        "initial": row.initial,
    }
    assert len(bench.readings(42).observations) == row.readings


@pytest.mark.parametrize(("name", "preset"), ALL)
def test_noise_levels(name, preset):
    row, bench = SETTINGS[name, preset], benchmark(name, preset)
    assert (bench.noise.high, bench.noise.low, bench.noise.share) == (row.high, row.low, row.share)
    drawn = bench.readings(43)
    assert drawn.is_bad.sum() == round(row.share * row.readings)
    np.testing.assert_array_equal(drawn.sigma_true, np.where(drawn.is_bad, row.high, row.low))
    errors = drawn.observations.values - drawn.clean
    for level, chosen in ((row.high, drawn.is_bad), (row.low, ~drawn.is_bad)):
        part = errors[chosen]
        # Five standard errors of a root mean square.
        slack = 5 / np.sqrt(2 * part.size)
        assert np.sqrt(np.mean(part**2)) == pytest.approx(level, rel=slack)


@pytest.mark.parametrize(("name", "preset"), ALL)
def test_protocols(name, preset):
    row, bench = SETTINGS[name, preset], benchmark(name, preset)
    first, *others = bench.protocol.stages
    assert isinstance(first, Adam)
    assert (first.epochs, first.rate, first.batch) == (20_000, 1e-3, None)
    assert not bench.protocol.scaled
    assert (bench.protocol.architecture.depth, bench.protocol.architecture.width) == (5, 100)
    tuning, *more = bench.fine_tune.stages
    assert isinstance(tuning, Adam) and tuning.epochs == 2_000
    assert bench.fine_tune.weights["equations"] == row.physics
    if name in ASSIMILATION:
        assert bench.kind == "assimilation"
        assert first.groups == ("data",)
        (second,) = others
        assert isinstance(second, Lbfgs) and (second.iterations, second.history) == (5_000, 50)
        assert second.tolerance == 1e-8 and second.balance == (preset == "released")
        assert [(stage.kind, stage.length) for stage in more] == [("lbfgs", 500)]
    else:
        assert bench.kind == "inversion" and not others and not more
        assert first.groups == ("data", "equations", "conditions")


def test_released_weights_of_the_beam():
    released = benchmark("ebinv", "released")
    assert released.protocol.weights == {"boundary": 0.15, "initial": 0.15}
    assert released.fine_tune.weights == {"equations": 0.1, "boundary": 0.01, "initial": 0.01}
    assert benchmark("ebinv").protocol.weights == {}


def test_starting_values():
    starts = {
        (name, preset): {s.name: s.initial for s in benchmark(name, preset).problem.scalars}
        for name in ("nsinv", "ebinv", "winv")
        for preset in PRESETS
    }
    assert starts["nsinv", "paper"] == {"b1": 0.0, "b2": 1.0}
    assert starts["nsinv", "released"] == {"b1": 1.0, "b2": 1.0}
    for preset in PRESETS:
        assert starts["ebinv", preset] == {"alpha": 0.5}
        assert starts["winv", preset] == {"c": 1.0}
    assert benchmark("nsinv").true_scalars == {"b1": 1.0, "b2": 0.01}
    assert benchmark("ebinv").true_scalars == {"alpha": 1.0}
    assert benchmark("winv").true_scalars == {"c": 2.0}


# -- layouts -------------------------------------------------------------------------------


def axes(points):
    return [np.unique(np.round(column, 12)) for column in points.T]


@pytest.mark.parametrize(
    ("name", "preset", "ends", "counts"),
    [
        ("pinv", "paper", [(0, 1), (0, 1)], (50, 50)),
        ("hinv", "paper", [(-1, 1), (-1, 1), (0, 1)], (10, 10, 25)),
        ("ebinv", "paper", [(0, 1), (0, 1)], (100, 100)),
        ("winv", "paper", [(0, 1), (0, 1)], (100, 100)),
        ("poisson", "paper", [(0.125, 0.875), (0.125, 0.875)], (15, 15)),
        ("heat", "paper", [(0.2, 0.8), (0, 0.02)], (20, 20)),
        ("heat-forced", "paper", [(0.2, 0.8), (0, 0.02)], (20, 20)),
    ],
)
def test_grids_of_readings(name, preset, ends, counts):
    points = benchmark(name, preset).reading_points()
    found = axes(points)
    assert tuple(len(axis) for axis in found) == counts
    assert len(np.unique(points, axis=0)) == np.prod(counts)
    for axis, (low, high) in zip(found, ends, strict=True):
        np.testing.assert_allclose(axis, np.linspace(low, high, len(axis)), atol=1e-12)


@pytest.mark.parametrize(("preset", "times"), [("paper", 60), ("released", 67)])
def test_wave_is_read_in_two_bands(preset, times):
    x, t = axes(benchmark("wave", preset).reading_points())
    expected = np.concatenate([np.linspace(0, 0.2, 10), np.linspace(0.8, 1, 10)])
    np.testing.assert_allclose(x, expected, atol=1e-12)
    np.testing.assert_allclose(t, np.linspace(0, 1, times), atol=1e-12)


@pytest.mark.parametrize("preset", PRESETS)
def test_stokes_is_read_at_cell_centres_in_a_disc(preset):
    points = benchmark("stokes", preset).reading_points()
    assert (np.linalg.norm(points - 0.5, axis=1) < 0.25).all()
    cells = {"paper": (36, 44), "released": (34, 45)}[preset]
    shifted = points * cells - 0.5
    np.testing.assert_allclose(shifted, np.rint(shifted), atol=1e-9)


def test_the_wake_is_read_on_rows_that_no_test_sees():
    bench = benchmark("nsinv", wake="embedded")
    points, tested = bench.reading_points(), bench.test_rows()
    assert len(tested) == 355_000 and tested.sum() == 345_000 == len(bench.test_points())
    (patch,) = bench.layout
    assert isinstance(patch.sampler, GridRows)
    rows = patch.sampler.rows()
    assert len(np.unique(rows)) == 10_000 and not tested[rows].any()
    np.testing.assert_array_equal(points, bench.grid_points()[rows])
    # Random rows cover the whole of space and time evenly.
    for column, (low, high) in zip(points.T, bench.problem.coordinates.values(), strict=True):
        counts = np.histogram(column, 7, (low, high))[0]
        assert counts.min() > 0.8 * counts.max()


@pytest.mark.parametrize("name", sorted(ASSIMILATION))
def test_sobol_points_follow_the_seed(name):
    problem = benchmark(name).problem
    first, again, other = (problem.collocation_points(seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


# -- test grids ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "sizes"),
    [
        ("pinv", (100, 100), {"a": 0.4326}),
        ("hinv", (60, 60, 50), {"a": 2.0595}),
        ("poisson", (200, 200), {"u": 0.995}),
        ("heat", (200, 200), {"u": 0.5003}),
        ("heat-forced", (200, 200), {"u": 0.7016}),
        ("wave", (200, 200), {"u": 0.4975}),
        ("stokes", (200, 200), {("u", "v"): 0.6776}),
    ],
)
def test_sizes_on_the_test_grids_are_those_printed(name, shape, sizes):
    bench = benchmark(name)
    assert bench.test_grid.counts == shape
    truth = bench.grid_truth()
    for fields, size in sizes.items():
        values = np.stack([truth[field] for field in fields])
        assert np.sqrt(np.mean(values**2)) == pytest.approx(size, abs=6e-5)


def test_sizes_of_the_wake_are_those_printed():
    # Those printed come from a sample, so they agree to two digits.
    bench = benchmark("nsinv", wake="embedded")
    tested, truth = bench.test_rows(), bench.grid_truth()
    for name, size in (("u", 0.908), ("v", 0.275), ("p", 0.130)):
        assert np.sqrt(np.mean(truth[name][tested] ** 2)) == pytest.approx(size, abs=3e-3)
    assert truth["p"][tested].std() == pytest.approx(0.102, abs=1e-3)


def test_the_wake_is_exact_at_its_frames():
    from unpinn.benchmarks import load_wake

    bench, wake = benchmark("nsinv", wake="embedded"), load_wake()
    for name, values in bench.grid_truth().items():
        frames = getattr(wake, name)[:, :, :71].ravel()
        np.testing.assert_allclose(values, frames, atol=1e-12)
