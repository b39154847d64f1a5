"""Grids, Sobol points, random points, points of one's own: counts, balance, filters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpinn._errors import UserError
from unpinn.problem import Grid, Points, Random, Sampler, Sobol

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
BOX = {"x": (-2.0, 3.0), "t": (0.0, 0.02), "z": (1e6, 2e6)}
drawing = pytest.mark.parametrize("kind", [Sobol, Random])


def in_disc(x, y):
    return (x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.25**2


# -- every sampler ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler", [Grid(2, 3, 4), Grid(2, 3, 4, ends=False), Sobol(24), Random(24)], ids=repr
)
def test_points_lie_in_the_box_in_its_order(sampler):
    points = sampler.draw(BOX, 3)
    assert points.shape == (24, 3)
    assert points.dtype == np.float64
    for column, (low, high) in zip(points.T, BOX.values(), strict=True):
        assert low <= column.min() < column.max() <= high


@pytest.mark.parametrize("sampler", [Grid(2), Sobol(2), Random(2), Points([[0.0]])], ids=repr)
def test_every_sampler_is_one(sampler):
    assert isinstance(sampler, Sampler)


def test_anything_that_draws_is_a_sampler():
    class Mine:
        def draw(self, box, seed):
            return np.zeros((seed, len(box)))

    assert isinstance(Mine(), Sampler)
    assert not isinstance(3, Sampler)


# -- grids ------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.booleans())
def test_a_grid_has_exact_counts(counts, ends):
    box = dict(zip("xyz", BOX.values(), strict=True))
    box = {name: box[name] for name in list(box)[: len(counts)]}
    points = Grid(*counts, ends=ends).draw(box)
    assert len(points) == math.prod(counts)
    assert len(np.unique(points, axis=0)) == len(points)
    for column, count in zip(points.T, counts, strict=True):
        assert len(np.unique(column)) == count


def test_a_grid_includes_its_ends_or_takes_the_middles():
    line = {"x": (0.0, 1.0)}
    np.testing.assert_allclose(Grid(5).draw(line)[:, 0], [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(Grid(4, ends=False).draw(line)[:, 0], [0.125, 0.375, 0.625, 0.875])
    assert Grid(1).draw(line)[0, 0] == 0.5


def test_a_grid_runs_over_its_last_coordinate_first():
    np.testing.assert_array_equal(Grid(2, 2).draw(SQUARE), [[0, 0], [0, 1], [1, 0], [1, 1]])


def test_a_grid_takes_any_whole_numbers():
    assert Grid(np.int64(3), 2).counts == (3, 2)
    assert Grid(3, 2) == Grid(3, 2)
    assert hash(Grid(3, 2)) == hash(Grid(3, 2))


@pytest.mark.parametrize("counts", [(), (0,), (3, -1)])
def test_a_grid_needs_counts(counts):
    with pytest.raises(UserError, match="a grid needs whole counts of 1 or more"):
        Grid(*counts)


def test_a_grid_of_another_dimension_is_refused():
    with pytest.raises(UserError, match=r"a grid of 3 counts \(2, 2, 2\) does not fit the 2 coord"):
        Grid(2, 2, 2).draw(SQUARE)


# -- drawn points -----------------------------------------------------------------------------


@drawing
@given(count=st.integers(1, 300), seed=st.integers(0, 2**31))
def test_counts_are_exact(kind, count, seed):
    assert kind(count).draw(SQUARE, seed).shape == (count, 2)


@drawing
def test_a_seed_decides(kind):
    first, again, other = (kind(50).draw(SQUARE, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, other).any()


@drawing
def test_drawing_touches_no_global_seed(kind):
    before = np.random.get_state()[1].copy()
    kind(10).draw(SQUARE, 0)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@drawing
def test_more_points_begin_with_the_fewer(kind):
    np.testing.assert_array_equal(kind(300).draw(SQUARE, 5)[:37], kind(37).draw(SQUARE, 5))


@pytest.mark.parametrize("power", [3, 6, 8])
def test_sobol_points_are_balanced_in_every_dyadic_box(power):
    points = Sobol(2**power).draw(SQUARE, 11)
    for first in range(power + 1):
        cells = (points * [2**first, 2 ** (power - first)]).astype(int)
        assert len(np.unique(cells, axis=0)) == 2**power


@pytest.mark.parametrize("count", [100, 320])
def test_sobol_points_cover_evenly_at_any_count(count):
    # Over quarters of the square: independent points would scatter by the root of the share.
    cells = (Sobol(count).draw(SQUARE, 0) * 2).astype(int)
    counts = np.unique(cells, axis=0, return_counts=True)[1]
    assert counts.max() - counts.min() <= 4


@drawing
@pytest.mark.parametrize("count", [0, -3])
def test_drawing_needs_a_count(kind, count):
    with pytest.raises(UserError, match="a sampler needs a whole count of 1 or more"):
        kind(count).draw(SQUARE, 0)


# -- subdomains -------------------------------------------------------------------------------


@drawing
def test_a_subdomain_keeps_the_exact_count(kind):
    points = kind(200, where=in_disc).draw(SQUARE, 4)
    assert points.shape == (200, 2)
    assert in_disc(*points.T).all()


@drawing
def test_a_subdomain_filters_the_same_sequence(kind):
    kept = kind(100, where=in_disc).draw(SQUARE, 4)
    everything = kind(4096).draw(SQUARE, 4)
    np.testing.assert_array_equal(kept, everything[in_disc(*everything.T)][:100])


def test_a_grid_in_a_subdomain_keeps_what_lies_inside():
    points = Grid(36, 44, where=in_disc, ends=False).draw(SQUARE)
    assert in_disc(*points.T).all()
    everything = Grid(36, 44, ends=False).draw(SQUARE)
    assert len(points) == in_disc(*everything.T).sum() > 0


def test_a_filter_takes_what_it_names_in_any_order():
    one = Grid(5, 5, where=lambda y: y > 0.4).draw(SQUARE)
    other = Grid(5, 5, where=lambda y, x: (y > 0.4) & (x >= 0)).draw(SQUARE)
    np.testing.assert_array_equal(one, other)


def test_a_filter_may_carry_constants():
    points = Random(50, where=lambda x, edge=0.7: x > edge).draw(SQUARE, 0)
    assert (points[:, 0] > 0.7).all()


@pytest.mark.parametrize(
    "sampler", [Grid(5, 5, where=lambda x: x > 2), Sobol(5, where=lambda x: x > 2),
                Random(5, where=lambda x: x > 2)], ids=["grid", "sobol", "random"],
)  # fmt: skip
def test_an_empty_subdomain_is_told(sampler):
    with pytest.raises(UserError, match=r"subdomain filter keeps (no|almost no) point.*its sign"):
        sampler.draw(SQUARE, 0)


def test_a_filter_of_an_unknown_coordinate_is_told():
    with pytest.raises(UserError, match=r"takes 'z', which is no coordinate here \(x, y\)"):
        Sobol(5, where=lambda z: z > 0).draw(SQUARE, 0)


@pytest.mark.parametrize("where", [lambda x: True, lambda x: (x > 0)[:3]])
def test_a_filter_of_another_shape_is_told(where):
    with pytest.raises(UserError, match="must give one true or false a point"):
        Grid(5, 5, where=where).draw(SQUARE)


# -- points of one's own ----------------------------------------------------------------------


def test_own_points_are_given_back():
    np.testing.assert_array_equal(Points([[0.1, 0.2], [1, 0]]).draw(SQUARE), [[0.1, 0.2], [1, 0]])
    np.testing.assert_array_equal(Points([0.1, 0.2]).draw({"x": (0, 1)}), [[0.1], [0.2]])


@pytest.mark.parametrize(
    "points", [[0.1, 0.2], [[0.1]], [[0.1, 0.2, 0.3]], [], np.empty((0, 2)), np.zeros((1, 1, 2))]
)
def test_own_points_of_another_shape_are_refused(points):
    with pytest.raises(UserError, match=r"a non-empty array \(n, 2\) of x, y"):
        Points(points).draw(SQUARE)


def test_own_points_outside_are_refused_by_row_and_coordinate():
    with pytest.raises(UserError, match=r"in 2 rows, first in row 1 \(y = 1\.5, domain \[0, 1\]\)"):
        Points([[0, 0], [0.5, 1.5], [0, -1]]).draw(SQUARE)
    with pytest.raises(UserError, match="not finite in row 1"):
        Points([[0, 0], [0.5, np.nan]]).draw(SQUARE)


def test_rounding_at_the_edge_is_forgiven():
    edge = np.float32(0.1)
    assert Points([[edge]]).draw({"x": (0.0, 0.1)}).shape == (1, 1)
