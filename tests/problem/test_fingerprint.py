"""Fingerprints: one a statement, in every process, and another as soon as the meaning changes."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import unpinn
from unpinn.problem import (
    Condition,
    Field,
    Grid,
    Measurement,
    Points,
    Problem,
    Random,
    Scalar,
    Sobol,
)
from unpinn.problem._fingerprint import fingerprint

SPEED = 2.0


def source(x):
    return SPEED * x


def make(**changes) -> Problem:
    statement = dict(
        coordinates={"x": (0, 1), "t": (0, 1)},
        fields=["u", "v"],
        unknowns=[Scalar("k", 1.0)],
        equations={"e": lambda u, k: u.t - k * u.xx},
        conditions=[Condition("edge", lambda u: u, at={"x": 0.0}, points=Grid(5))],
        measurements={"rate": lambda u: u.t},
        collocation=Sobol(64),
        name="heat",
    )
    return Problem(**{**statement, **changes})


def edge(residual=lambda u: u, at=None, points=None, weight=1.0) -> dict:
    return dict(
        conditions=[Condition("edge", residual, at or {"x": 0.0}, points or Grid(5), weight)]
    )


CHANGES = {
    "name": dict(name="another"),
    "interval": dict(coordinates={"x": (0, 2), "t": (0, 1)}),
    "time": dict(time="x"),
    "field": dict(fields=["u", "v", "w"]),
    "initial value": dict(unknowns=[Scalar("k", 2.0)]),
    "bounds": dict(unknowns=[Scalar("k", 1.0, (0, None))]),
    "log": dict(unknowns=[Scalar("k", 1.0, log=True)]),
    "unknown field": dict(unknowns=[Field("k")]),
    "equation's name": dict(equations={"f": lambda u, k: u.t - k * u.xx}),
    "sign": dict(equations={"e": lambda u, k: u.t + k * u.xx}),
    "constant": dict(equations={"e": lambda u, k: u.t - 2 * k * u.xx}),
    "derivative": dict(equations={"e": lambda u, k: u.x - k * u.xx}),
    "argument": dict(equations={"e": lambda v, k: v.t - k * v.xx}),
    "further equation": dict(
        equations={"e": lambda u, k: u.t - k * u.xx, "f": lambda v: v.t},
    ),
    "condition's residual": edge(lambda u: u - 1),
    "condition's place": edge(at={"x": 1.0}),
    "condition's points": edge(points=Grid(6)),
    "condition's weight": edge(weight=2.0),
    "no condition": dict(conditions=[]),
    "measurement": dict(measurements={"rate": lambda u: u.x}),
    "footprint": dict(measurements={"rate": Measurement(lambda u: u.t, {"x": 0.1})}),
    "count": dict(collocation=Sobol(65)),
    "sampler": dict(collocation=Random(64)),
    "filter": dict(collocation=Sobol(64, where=lambda x: x > 0)),
    "another filter": dict(collocation=Sobol(64, where=lambda x: x > 0.5)),
    "own points": dict(collocation=Points([[0.0, 0.5]])),
    "other own points": dict(collocation=Points([[0.0, 0.25]])),
    "scale": dict(scales={"u": 2.0}),
}


def test_the_same_statement_has_the_same_fingerprint():
    assert make().fingerprint == make().fingerprint
    assert re.fullmatch("[0-9a-f]{16}", make().fingerprint)


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_changes_it(change):
    assert make(**CHANGES[change]).fingerprint != make().fingerprint


def test_no_two_changes_look_alike():
    assert len({make(**change).fingerprint for change in CHANGES.values()}) == len(CHANGES)


def test_where_a_statement_came_from_does_not_count():
    assert make(source={"file": "heat.py"}).fingerprint == make().fingerprint


# -- functions --------------------------------------------------------------------------------


def closing_over(constant):
    return lambda u: constant * u


def with_inner(attribute_first: bool):
    if attribute_first:
        return lambda u: next(part.x for part in (u,))
    return lambda u: next(part.t for part in (u,))


DIFFERENT = {
    "closures": (closing_over(1.0), closing_over(2.0)),
    "long arrays": (closing_over(np.arange(5000.0)), closing_over(np.arange(5000.0) + 1e-9)),
    "arrays of JAX": (closing_over(jnp.zeros(3)), closing_over(jnp.ones(3))),
    "shapes": (closing_over(np.zeros((2, 3))), closing_over(np.zeros((3, 2)))),
    "functions inside": (with_inner(True), with_inner(False)),
    "defaults": (lambda u, f=1.0: f * u, lambda u, f=2.0: f * u),
    "default functions": (lambda u, f=np.sin: f(u), lambda u, f=np.cos: f(u)),
    "partials": (functools.partial(pow, 2), functools.partial(pow, 3)),
    "argument order": (lambda u, v: u.x, lambda v, u: v.x),
    "nested closures": (closing_over(closing_over(1.0)), closing_over(closing_over(2.0))),
    "methods": (Grid(2).draw, Grid(3).draw),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_functions_that_differ(case):
    one, other = DIFFERENT[case]
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_a_keyword_default_counts():
    def one(u, *, factor=1.0):
        return factor * u

    before = fingerprint(one)
    one.__kwdefaults__ = {"factor": 2.0}
    assert fingerprint(one) != before


def test_globals_that_a_function_reads_count(monkeypatch):
    function = lambda u, x: u - source(x)  # noqa: E731
    before = fingerprint(function)
    monkeypatch.setitem(globals(), "SPEED", 3.0)
    changed = fingerprint(function)
    monkeypatch.setitem(globals(), "source", lambda x: x**2)
    assert len({before, changed, fingerprint(function)}) == 3


def test_globals_of_an_attribute_s_name_do_not_count(monkeypatch):
    function = lambda u: u.t  # noqa: E731
    before = fingerprint(function)
    monkeypatch.setitem(globals(), "t", object())
    assert fingerprint(function) == before


def test_recursion_ends():
    def factorial(n):
        return n * factorial(n - 1) if n else 1

    loop: list = []
    loop.append(loop)
    assert fingerprint(factorial) == fingerprint(factorial)
    assert fingerprint(loop) == fingerprint(loop)


def test_moving_code_changes_nothing():
    scopes = [{}, {}]
    for lines, scope in zip((0, 7), scopes, strict=True):
        exec("\n" * lines + "residual = lambda u, k: u.t - k * u.xx", scope)
    assert fingerprint(scopes[0]["residual"]) == fingerprint(scopes[1]["residual"])


# -- processes --------------------------------------------------------------------------------

STATEMENT = """
import functools
import jax.numpy as jnp
import numpy as np
from jax.numpy import sin
from unpinn.problem import *

CONSTANTS = {"a": 1.0, "b": np.arange(9.0)}
KINDS = {"alpha", "beta", "gamma", "delta"}

def source(x, t):
    return CONSTANTS["a"] * sin(x) * np.pi

class Law:
    def __init__(self):
        self.factor = 2.0
    def __call__(self, u):
        return self.factor * u.x

def close(c):
    return lambda u, x, t: c * u.t - source(x, t) - (1 if "x" in {"x", "y", "zeta"} else 0)

def scaled(factor, u):
    return factor * u.xx

problem = Problem(
    coordinates={"x": (0, 1), "t": (0, 1)}, fields=["u"], unknowns=[Scalar("k", 1.0)],
    equations={"a": close(np.ones(3).sum()), "b": functools.partial(scaled, 3.0), "c": Law(),
               "d": lambda u: u if "alpha" in KINDS else u.x},
    conditions=[Condition("edge", lambda u: [p.x for p in (u, u)][0], at={"x": 0},
                          points=Sobol(8, where=lambda t: t > 0.5))],
    collocation=Grid(5, 5, where=lambda x: x < 0.9),
)
print(problem.fingerprint)
"""


def test_every_process_finds_the_same():
    found = set()
    for seed in ("1", "2"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(Path(unpinn.__file__).parents[1]),
        }
        ran = subprocess.run(
            [sys.executable, "-c", STATEMENT],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.add(ran.stdout.strip())
    assert len(found) == 1
    assert re.fullmatch("[0-9a-f]{16}", found.pop())
