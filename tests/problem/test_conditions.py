"""Conditions: where they hold, what kind they are, and how they are sampled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.problem import Condition, Grid, Points, Problem, Random, Scalar, Sobol

BOX = {"x": (0.0, 1.0), "y": (-1.0, 2.0), "t": (0.0, 0.5)}


def condition(at=None, points=None, weight=1.0) -> Condition:
    return Condition("edge", lambda u: u, at=at, points=points, weight=weight)


# -- faces ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "faces"),
    [
        (None, [{}]),
        ({"x": 0.0}, [{"x": 0.0}]),
        ({"x": 0.3}, [{"x": 0.3}]),
        ({"y": "low"}, [{"y": -1.0}]),
        ({"y": "high"}, [{"y": 2.0}]),
        ({"x": 1, "y": "low"}, [{"x": 1.0, "y": -1.0}]),
        ([{"x": "low"}, {"x": "high"}], [{"x": 0.0}, {"x": 1.0}]),
        ("walls", [{"x": 0.0}, {"x": 1.0}, {"y": -1.0}, {"y": 2.0}]),
    ],
)
def test_faces(at, faces):
    found = condition(at).faces(BOX, "t")
    assert found == faces
    assert all(isinstance(number, float) for face in found for number in face.values())


def test_walls_without_time_are_all_faces():
    assert len(condition("walls").faces(BOX, None)) == 6


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        (None, "interior"),
        ({"t": 0.0}, "initial"),
        ({"t": "low"}, "initial"),
        ({"t": "high"}, "boundary"),
        ({"x": 0.0}, "boundary"),
        ("walls", "boundary"),
        ({"t": 0.0, "x": 0.0}, "boundary"),
        ([{"t": 0.0}, {"x": 0.0}], "boundary"),
        ([{"t": "low"}, {"t": "high"}], "boundary"),
        ([{}, {"x": 0.0}], "interior"),
    ],
)
def test_kinds(at, kind):
    assert condition(at).kind(BOX, "t") == kind


def test_without_time_nothing_is_initial():
    assert condition({"t": 0.0}).kind(BOX, None) == "boundary"


@pytest.mark.parametrize("width", [1e-12, 1e-3, 1e12])
def test_the_end_of_time_is_not_its_start_however_short(width):
    box = {"x": (0.0, 1.0), "t": (0.0, width)}
    assert condition({"t": width}).kind(box, "t") == "boundary"
    assert condition({"t": 0.0}).kind(box, "t") == "initial"


# -- points -----------------------------------------------------------------------------------


def test_a_face_is_sampled_in_the_other_coordinates():
    points = condition({"y": "high"}, Grid(4, 3)).draw(BOX, "t", 0)
    assert points.shape == (12, 3)
    assert (points[:, 1] == 2.0).all()
    np.testing.assert_array_equal(
        points[:, [0, 2]], Grid(4, 3).draw({"x": BOX["x"], "t": BOX["t"]})
    )


def test_each_face_has_its_own_points():
    points = condition([{"x": "low"}, {"x": "high"}], Random(20)).draw(BOX, "t", 0)
    assert points.shape == (40, 3)
    assert not np.isin(points[:20, 1:], points[20:, 1:]).any()
    np.testing.assert_array_equal(points[:, 0], [0.0] * 20 + [1.0] * 20)


@pytest.mark.parametrize("sampler", [Grid(5, 5, 5), Sobol(125), Random(125)], ids=repr)
def test_the_whole_domain_is_sampled_in_every_coordinate(sampler):
    points = condition(None, sampler).draw(BOX, "t", 0)
    assert points.shape == (125, 3)
    for column, (low, high) in zip(points.T, BOX.values(), strict=True):
        assert low <= column.min() < column.max() <= high


def test_a_corner_is_one_point():
    corner = condition({"x": 0.0, "y": "low", "t": 0.25})
    np.testing.assert_array_equal(corner.draw(BOX, "t", 0), [[0.0, -1.0, 0.25]])


def test_counts_when_nothing_is_said():
    line, plane = {"x": (0, 1)}, {"x": (0, 1), "y": (0, 1)}
    assert condition({"x": 0.0}).draw(line, None, 0).shape == (1, 1)
    assert condition({"x": 0.0}).draw(plane, None, 0).shape == (100, 2)
    assert condition({"x": 0.0}).draw(BOX, None, 0).shape == (256, 3)


def test_own_points_on_a_face():
    points = condition({"x": 1.0}, Points([[0.0, 0.1], [1.0, 0.2]])).draw(BOX, "t", 0)
    np.testing.assert_array_equal(points, [[1.0, 0.0, 0.1], [1.0, 1.0, 0.2]])


def test_the_seed_decides():
    drawn = [condition("walls", Sobol(8)).draw(BOX, "t", seed) for seed in (1, 1, 9)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_a_subdomain_of_a_face():
    points = condition({"y": "low"}, Sobol(50, where=lambda x: x > 0.8)).draw(BOX, "t", 0)
    assert points.shape == (50, 3)
    assert (points[:, 0] > 0.8).all()


# -- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ({"z": 0.0}, "is placed at 'z', which is no coordinate (x, y, t)"),
        ({"x": 1.5}, "is placed at x = 1.5, outside [0, 1]"),
        ({"x": -1e-3}, "outside [0, 1]"),
        ({"x": "left"}, "is placed at x = 'left'"),
        ({"x": math.nan}, "outside [0, 1]"),
        ("wall", "has at='wall'; write 'walls' or a mapping"),
        ([], "holds nowhere"),
    ],
)
def test_a_place_that_is_none_is_told(at, told):
    with pytest.raises(UserError) as caught:
        condition(at).faces(BOX, "t")
    assert "condition 'edge'" in str(caught.value)
    assert told in str(caught.value)


def test_walls_of_time_alone_hold_nowhere():
    with pytest.raises(UserError, match="condition 'edge' holds nowhere"):
        condition("walls").kind({"t": (0.0, 1.0)}, "t")


def test_a_sampler_that_does_not_fit_names_the_condition():
    with pytest.raises(UserError, match="condition 'edge': a grid of 1 counts"):
        condition({"x": 0.0}, Grid(5)).draw(BOX, "t", 0)
    with pytest.raises(UserError, match="condition 'edge': the subdomain filter takes 'x'"):
        condition({"x": 0.0}, Sobol(5, where=lambda x: x > 0)).draw(BOX, "t", 0)


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf])
def test_a_weight_is_a_finite_number(weight):
    with pytest.raises(UserError, match="condition 'edge' needs a finite weight of zero or more"):
        condition(weight=weight)


def test_a_weight_of_zero_is_one():
    assert condition(weight=0).weight == 0


# -- within a problem -------------------------------------------------------------------------


def problem(*conditions: Condition):
    return Problem(
        coordinates={"x": (0, 1), "t": (0, 1)},
        fields=["u"],
        unknowns=[Scalar("k", 1.0)],
        equations={"e": lambda u, k: u.t - k * u.xx},
        conditions=conditions,
    )


def test_a_problem_draws_by_number_and_tells_the_kind():
    both = problem(
        Condition("ends", lambda u: u, at="walls", points=Grid(7)),
        Condition("start", lambda u, x, k: (u - k * x, u.t), at={"t": 0.0}, points=Grid(9)),
    )
    assert both.condition_points(0, 0).shape == (14, 2)
    assert both.condition_points(1, 0).shape == (9, 2)
    assert [both.condition_kind(number) for number in (0, 1)] == ["boundary", "initial"]
    assert [e.components for e in both.condition_expressions] == [1, 2]


def test_a_misplaced_condition_is_told_where_it_is_written():
    with pytest.raises(UserError, match="condition 'end' is placed at x = 3"):
        problem(Condition("end", lambda u: u, at={"x": 3.0}))


def test_a_mistake_in_its_residual_names_the_condition():
    with pytest.raises(UserError, match=r"condition 'end': u\.y is not a derivative"):
        problem(Condition("end", lambda u: u.y, at={"x": 0.0}))
