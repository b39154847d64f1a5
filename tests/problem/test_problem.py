"""Problems: what they know of themselves, and what they refuse."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import unpinn
from unpinn._errors import UserError
from unpinn.problem import Condition, Derivative, Field, Grid, Problem, Scalar, Sobol


def heat(**changes) -> Problem:
    statement = dict(
        coordinates={"x": (0, 1), "t": (0, 0.02)},
        fields=["u"],
        unknowns=[Scalar("k", 1.0)],
        equations={"heat": lambda u, k: u.t - k * u.xx},
    )
    return Problem(**{**statement, **changes})


def refused(told: str, **changes) -> None:
    with pytest.raises(UserError) as caught:
        heat(**changes)
    assert told in str(caught.value)


# -- what a problem knows ---------------------------------------------------------------------


def flow() -> Problem:
    return Problem(
        coordinates={"x": (1, 8), "y": [-2, 2], "t": (0, 7)},
        fields=["u", "v", "p"],
        unknowns=[Scalar("b1", 0.0), Field("a", scale=2.0), Scalar("b2", 1.0)],
        equations={
            "momentum": lambda u, v, p, b1, b2: (
                u.t + b1 * (u * u.x + v * u.y) + p.x - b2 * u.laplacian,
                v.t + b1 * (u * v.x + v * v.y) + p.y - b2 * v.laplacian,
            ),
            "continuity": lambda u, v: u.x + v.y,
            "coefficient": lambda a, x: a.x - x,
        },
        conditions=[Condition("edge", lambda u: u.xxx, at={"x": "low"})],
        scales={"p": 0.1},
    )


def test_names_and_parts():
    stated = flow()
    assert stated.columns == ("u", "v", "p", "a")
    assert [scalar.name for scalar in stated.scalars] == ["b1", "b2"]
    assert [unknown.name for unknown in stated.unknown_fields] == ["a"]
    assert stated.symbols.names == ("u", "v", "p", "a", "b1", "b2", "x", "y", "t")
    assert (stated.time, stated.space, stated.dimension) == ("t", ("x", "y"), 3)
    assert stated.coordinates["y"] == (-2.0, 2.0)
    assert all(isinstance(end, float) for ends in stated.coordinates.values() for end in ends)


def test_equations_are_read_once_and_know_their_components():
    stated = flow()
    assert [e.name for e in stated.equation_expressions] == [
        "momentum",
        "continuity",
        "coefficient",
    ]
    assert [e.components for e in stated.equation_expressions] == [2, 1, 1]
    assert stated.equation_expressions is stated.equation_expressions
    assert Derivative("u", "laplacian") in stated.equation_expressions[0].derivatives


def test_the_highest_order_is_that_of_equations_and_conditions():
    assert flow().highest_order == 3
    assert heat().highest_order == 2
    assert heat(equations={"e": lambda u: u.laplacian}).highest_order == 2
    assert heat(equations={"e": lambda u: u.xxtt}).highest_order == 4
    assert heat(equations={"e": lambda u, x: u - x}).highest_order == 0


@pytest.mark.parametrize(
    ("coordinates", "time", "found"),
    [
        ({"x": (0, 1), "t": (0, 1)}, None, "t"),
        ({"x": (0, 1), "time": (0, 1)}, None, "time"),
        ({"x": (0, 1), "y": (0, 1)}, None, None),
        ({"x": (0, 1), "tau": (0, 1)}, "tau", "tau"),
    ],
)
def test_the_time_coordinate(coordinates, time, found):
    stated = heat(coordinates=coordinates, time=time, equations={"e": lambda u: u.x})
    assert stated.time == found


def test_a_single_field_may_be_a_name():
    assert heat(fields="u").fields == ("u",)


def test_what_the_caller_changes_later_changes_no_problem():
    equations, scales = {"e": lambda u: u.t}, {"u": 2.0}
    stated = heat(equations=equations, scales=scales)
    equations["another"], scales["u"] = lambda u: u.x, 3.0
    assert list(stated.equations) == ["e"]
    assert stated.scales == {"u": 2.0}


def test_points_are_drawn_where_the_problem_says():
    assert heat().collocation_points(0).shape == (2048, 2)
    points = heat(collocation=Grid(4, 5)).collocation_points(0)
    assert points.shape == (20, 2)
    assert points[:, 1].max() == 0.02
    one, other = (heat(collocation=Sobol(64)).collocation_points(seed) for seed in (1, 2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", ["d", "value", "shape", "T", "_u", "laplacian"])
def test_fields_and_unknowns_may_have_any_name_that_a_function_can_take(name):
    residual = eval(f"lambda {name}: {name}.x")
    assert heat(fields=[name], equations={"e": residual}).highest_order == 1
    residual = eval(f"lambda u, {name}: u.t - {name} * u.xx")
    stated = heat(unknowns=[Scalar(name, 1.0)], equations={"e": residual})
    assert stated.equation_expressions[0].arguments == ("u", name)


def test_readings_of_fields_and_unknown_fields_can_be_asked_for():
    stated = flow()
    assert list(stated.measured_expressions) == ["u", "v", "p", "a"]
    for name, expression in stated.measured_expressions.items():
        assert expression.derivatives == {Derivative(name, (0, 0, 0))}
        assert expression.arguments == (name,)


# -- what it refuses --------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["coordinates", "equations"])
def test_nothing_to_solve(part):
    refused(f"a problem needs at least one {part[:-1]}", **{part: {}})


def test_no_fields():
    refused("a problem needs at least one field", fields=[])


@pytest.mark.parametrize("name", ["lambda", "2u", "u v", "", "None"])
def test_names_that_no_function_can_take(name):
    refused(f"{name!r} cannot name a coordinate, field or unknown", fields=[name])
    refused(f"{name!r} cannot name", unknowns=[Scalar(name, 1.0)])
    refused(f"{name!r} cannot name", coordinates={name: (0, 1)})


@pytest.mark.parametrize("name", ["d", "value", "laplacian", "shape", "size", "dtype", "_x"])
def test_coordinates_whose_derivative_would_mean_something_else(name):
    refused(
        f"{name!r} cannot name a coordinate, because u.{name} is something else",
        coordinates={name: (0, 1), "t": (0, 1)},
    )


@pytest.mark.parametrize(
    "changes",
    [
        dict(fields=["u", "u"]),
        dict(fields=["u", "x"]),
        dict(unknowns=[Scalar("u", 1.0)]),
        dict(unknowns=[Scalar("t", 1.0)]),
        dict(unknowns=[Scalar("k", 1.0), Field("k")]),
    ],
)
def test_a_name_used_twice(changes):
    refused("names two things; every name must be its own", **changes)


@pytest.mark.parametrize("ends", [(1, 0), (0, 0), (0, math.inf), (math.nan, 1), (-math.inf, 0)])
def test_an_interval_that_is_none(ends):
    refused("coordinate 'x' needs finite ends", coordinates={"x": ends, "t": (0, 1)})


@pytest.mark.parametrize("ends", [(0,), (0, 1, 2)])
def test_ends_that_are_no_pair(ends):
    refused("coordinate 'x' needs a pair (low, high)", coordinates={"x": ends, "t": (0, 1)})


def test_a_time_that_is_no_coordinate():
    refused("the time coordinate 'tau' is not among the coordinates", time="tau")


@pytest.mark.parametrize("scales", [{"u": 0.0}, {"u": math.inf}, {"v": 1.0}, {"k": 1.0}])
def test_scales_of_fields_only(scales):
    refused(f"scales[{next(iter(scales))!r}] must be a positive number", scales=scales)


def test_terms_with_one_name():
    edge = Condition("edge", lambda u: u, at={"x": 0})
    refused("'edge' names two terms", conditions=[edge, edge])
    refused("'heat' names two terms", conditions=[Condition("heat", lambda u: u)])
    refused("'data' is that of the readings", equations={"data": lambda u: u.t})
    refused("'data' is that of the readings", conditions=[Condition("data", lambda u: u)])


def test_a_mistake_in_an_equation_is_told_where_it_is_written():
    refused("equation 'heat' has an argument 'kk'", equations={"heat": lambda u, kk: u.t - kk})
    refused("equation 'heat': u.y is not a derivative", equations={"heat": lambda u: u.y})


WRONG_TYPES = {
    "coordinates": ('["x", "t"]', "coordinates must be a mapping"),
    "equations": ("[lambda u: u.t]", "equations must be a mapping"),
    "equations ": ('{"heat": 3}', "equation 'heat' must be a function"),
    "equations  ": ('{"heat": "u.t"}', "equation 'heat' must be a function"),
    "coordinates ": ('{"x": 3, "t": (0, 1)}', "coordinate 'x' needs a pair (low, high), not 3"),
    "coordinates  ": ('{"x": ("a", "b")}', "coordinate 'x' needs a pair"),
    "coordinates   ": ('{1: (0, 1), "t": (0, 1)}', "1 cannot name a coordinate"),
    "fields": ("[1]", "1 cannot name a coordinate, field or unknown"),
    "unknowns": ('["k"]', "the unknown 'k' must be a Scalar or a Field"),
    "conditions": ("[lambda u: u]", "must be a Condition"),
    "collocation": ("2048", "collocation must be a sampler such as Sobol(2048)"),
    "measurements": ("[lambda u: u]", "measurements must be a mapping"),
    "scales": ("[1.0]", "scales must be a mapping"),
}
CALLS = {
    'unpinn.problem.Scalar("k", "one")': "unknown 'k' needs a finite number",
    'unpinn.problem.Scalar("k", None)': "unknown 'k' needs a finite number",
    'unpinn.problem.Scalar("k", 1.0, 3)': "unknown 'k' needs a pair (low, high) as bounds, not 3",
    "unpinn.problem.Grid(2.5)": "a grid needs whole counts of 1 or more",
    'unpinn.problem.Sobol(2.5).draw({"x": (0, 1)}, 0)': "needs a whole count of 1 or more, not 2.5",
}


@pytest.fixture(scope="module")
def told_without_type_checks() -> dict[str, str]:
    """What users read whose arguments are of a wrong type: the tests' type checks come first."""
    statement = {
        "coordinates": '{"x": (0, 1), "t": (0, 1)}',
        "fields": '["u"]',
        "equations": '{"heat": lambda u: u.t}',
    }
    calls = list(CALLS)
    for part, (code, _) in WRONG_TYPES.items():
        changed = {**statement, part.strip(): code}
        calls.append(f"unpinn.problem.Problem({', '.join(f'{k}={v}' for k, v in changed.items())})")
    script = (
        "import json, sys, unpinn.problem\n"
        "def told(call):\n"
        "    try:\n"
        "        return 'accepted ' + repr(eval(call))\n"
        "    except Exception as error:\n"
        "        return f'{type(error).__name__}: {error}'\n"
        "print(json.dumps([told(call) for call in json.loads(sys.argv[1])]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(unpinn.__file__).parents[1])}
    ran = subprocess.run(
        [sys.executable, "-c", script, json.dumps(calls)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(zip([*CALLS, *WRONG_TYPES], json.loads(ran.stdout), strict=True))


@pytest.mark.parametrize("case", [*CALLS, *WRONG_TYPES])
def test_a_wrong_type_is_told_in_a_sentence(told_without_type_checks, case):
    expected = CALLS[case] if case in CALLS else WRONG_TYPES[case][1]
    told = told_without_type_checks[case]
    assert told.startswith("UserError: ")
    assert expected in told
    assert "\n" not in told
