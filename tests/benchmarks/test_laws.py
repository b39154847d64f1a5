"""The exact solution of every benchmark zeroes every equation and every condition."""

from __future__ import annotations

import inspect
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn.benchmarks import BENCHMARKS, PRESETS, benchmark
from unpinn.benchmarks._nsinv import wake_spline

SMOOTH = [name for name in BENCHMARKS if name != "nsinv"]


def differentiable(exact):
    """The exact solution's own code, with JAX in NumPy's place."""
    plain = inspect.unwrap(exact)
    return types.FunctionType(plain.__code__, {**plain.__globals__, "np": jnp})


def along(function, axis):
    def derived(*columns):
        tangents = [jnp.ones_like(c) if k == axis else jnp.zeros_like(c)
                    for k, c in enumerate(columns)]  # fmt: skip
        return jax.jvp(function, columns, tuple(tangents))[1]

    return derived


def differentiate(function, orders):
    for axis, order in enumerate(orders):
        for _ in range(order):
            function = along(function, axis)
    return function


def exact_values(bench, expressions, points):
    """Every derivative that the expressions read, of the exact solution, by nested jvp."""
    problem = bench.problem
    space = [k for k, n in enumerate(problem.coordinates) if n in problem.space]
    columns = tuple(jnp.asarray(points).T)
    values = {}
    for wanted in frozenset().union(*(e.derivatives for e in expressions)):
        function = differentiable(bench.exact[wanted.field])
        if wanted.orders == "laplacian":
            pure = [tuple(2 * (k == axis) for k in range(len(columns))) for axis in space]
            values[wanted] = sum(differentiate(function, orders)(*columns) for orders in pure)
        else:
            values[wanted] = differentiate(function, wanted.orders)(*columns)
    return values


def residual(bench, expression, points, scalars=None):
    with precision.scope("float64"):
        values = exact_values(bench, [expression], points)
        numbers = {n: jnp.asarray(v) for n, v in (scalars or bench.true_scalars).items()}
        coordinates = dict(zip(bench.problem.coordinates, jnp.asarray(points).T, strict=True))
        found = expression(values, numbers, coordinates)
        size = max([1.0, *(float(jnp.abs(v).max()) for v in values.values())])
        return np.abs(np.asarray(found)).max() / size


def random_points(problem, count=200, seed=1):
    ends = np.array(list(problem.coordinates.values()))
    return ends[:, 0] + np.random.default_rng(seed).random((count, len(ends))) * np.ptp(ends, 1)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", SMOOTH)
def test_exact_solution_zeroes_every_equation(name, preset):
    bench = benchmark(name, preset)
    for expression in bench.problem.equation_expressions:
        assert residual(bench, expression, random_points(bench.problem)) < 1e-12


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", SMOOTH)
def test_exact_solution_zeroes_every_condition_where_it_is_enforced(name, preset):
    bench = benchmark(name, preset)
    for number, expression in enumerate(bench.problem.condition_expressions):
        points = bench.problem.condition_points(number, seed=0)
        assert residual(bench, expression, points) < 1e-12


@pytest.mark.parametrize("name", ["ebinv", "winv"])
def test_a_coefficient_that_is_slightly_wrong_breaks_the_law(name):
    bench = benchmark(name)
    (expression,) = bench.problem.equation_expressions
    wrong = {n: value * (1 + 1e-9) for n, value in bench.true_scalars.items()}
    assert residual(bench, expression, random_points(bench.problem), wrong) > 1e-10


@pytest.mark.parametrize("name", ["pinv", "hinv"])
def test_a_coefficient_field_is_prescribed_all_along_the_boundary(name):
    problem = benchmark(name).problem
    number = next(k for k, c in enumerate(problem.conditions) if c.name == "a on the boundary")
    points = problem.condition_points(number, seed=0)
    for column, (coordinate, ends) in enumerate(problem.coordinates.items()):
        if coordinate in problem.space:
            assert all(np.count_nonzero(points[:, column] == end) >= 512 for end in ends)


def wake_values(bench, expressions, points):
    values = {}
    for wanted in frozenset().union(*(e.derivatives for e in expressions)):
        spline = wake_spline("embedded", wanted.field)
        orders = [(2, 0, 0), (0, 2, 0)] if wanted.orders == "laplacian" else [wanted.orders]
        values[wanted] = jnp.asarray(sum(spline(points, nu=nu) for nu in orders))
    return values


def wake_residual(bench, points, scalars):
    """The residuals of the three equations, (n, 3), and the size of the largest term in them."""
    expressions = bench.problem.equation_expressions
    with precision.scope("float64"):
        values = wake_values(bench, expressions, points)
        numbers = {n: jnp.asarray(v) for n, v in scalars.items()}
        found = [np.asarray(e(values, numbers, {})) for e in expressions]
    first = [np.asarray(v) for k, v in values.items() if k.order == 1]
    return np.concatenate(found, axis=1), max(np.sqrt(np.mean(v**2)) for v in first)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_wake_obeys_the_equations_as_well_as_its_grid_resolves_them(preset):
    # The truth is data here: single-precision harmonics on a grid, and derivatives are those of a
    # spline of fifth degree through it. Measured: 1.4e-3 of the size of the largest term.
    bench = benchmark("nsinv", preset, wake="embedded")
    points = random_points(bench.problem, 2000, seed=2)
    right, size = wake_residual(bench, points, bench.true_scalars)
    assert np.sqrt(np.mean(right**2)) < 2e-3 * size
    # The same measure tells true coefficients from false ones.
    for wrong in ({"b1": 0.98, "b2": 0.01}, {"b1": 1.0, "b2": 0.02}):
        assert np.mean(wake_residual(bench, points, wrong)[0] ** 2) > 10 * np.mean(right**2)


def test_least_squares_on_the_wake_returns_its_coefficients():
    bench = benchmark("nsinv", wake="embedded")
    points = random_points(bench.problem, 2000, seed=3)
    rest, first, second = (
        wake_residual(bench, points, {"b1": b1, "b2": b2})[0][:, :2].ravel()
        for b1, b2 in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    )
    columns = np.stack([first - rest, second - rest], axis=1)
    b1, b2 = np.linalg.lstsq(columns, -rest, rcond=None)[0]
    assert b1 == pytest.approx(1.0, abs=3e-4)
    assert b2 == pytest.approx(0.01, abs=1e-4)
