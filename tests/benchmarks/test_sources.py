"""Fields, coefficients and source terms, symbolically: the package's own code run on symbols."""

from __future__ import annotations

import inspect
import types

import numpy as np
import pytest
import sympy
from sympy import cos, diff, exp, pi, simplify, sin

from unpinn.benchmarks import _ebinv as _beam
from unpinn.benchmarks import _heat, _hinv, _pinv, _poisson, _stokes, _wave, _winv, benchmark

x, y, t = sympy.symbols("x y t", real=True)
D = 1 + x**2 + y**2 + (x - 1) ** 2 + (y - 1) ** 2
S = sin(pi * x) * sin(pi * y)


def symbolic(function, *symbols):
    """What the package's function is, as a formula."""
    plain = inspect.unwrap(function)
    names = {**plain.__globals__, "np": sympy, "jnp": sympy}
    return types.FunctionType(plain.__code__, names)(*symbols)


# As the specification states them.
FIELDS = {
    "pinv u": (_pinv.exact_u, (x, y), S),
    "pinv a": (_pinv.exact_a, (x, y), 1 / D),
    "hinv u": (_hinv.exact_u, (x, y, t), exp(-t) * S),
    "hinv a": (_hinv.exact_a, (x, y, t), 2 + S),
    "ebinv u": (_beam.exact_u, (x, t), sin(pi * x) * cos(pi**2 * t)),
    "winv u": (
        _winv.exact_u,
        (x, t),
        sin(pi * x) * cos(2 * pi * t) + sin(4 * pi * x) * cos(8 * pi * t) / 2,
    ),
    "poisson u": (_poisson.exact_u, (x, y), 30 * x * y * (1 - x) * (1 - y)),
    "heat u": (_heat.exact_free, (x, t), exp(-4 * pi**2 * t) * sin(2 * pi * x)),
    "heat-forced u": (_heat.exact_forced, (x, t), exp(-4 * pi**2 * t**2) * sin(2 * pi * x)),
    "wave u": (_wave.exact_u, (x, t), sin(2 * pi * x) * sin(2 * pi * t)),
    "stokes u": (_stokes.exact_u, (x, y), 4 * x * y**3),
    "stokes v": (_stokes.exact_v, (x, y), x**4 - y**4),
    "stokes p": (_stokes.exact_p, (x, y), 12 * x**2 * y - 4 * y**3 - 1),
}
SOURCES = {
    "pinv": (
        _pinv.forcing,
        (x, y),
        2 * pi**2 * S / D
        + 2
        * pi
        * ((2 * x - 1) * cos(pi * x) * sin(pi * y) + (2 * y - 1) * sin(pi * x) * cos(pi * y))
        / D**2,
    ),
    "hinv": (
        _hinv.forcing,
        (x, y, t),
        exp(-t)
        * (
            (4 * pi**2 - 1) * S
            + pi**2
            * (2 * S**2 - cos(pi * x) ** 2 * sin(pi * y) ** 2 - sin(pi * x) ** 2 * cos(pi * y) ** 2)
        ),
    ),
    "poisson": (_poisson.forcing, (x, y), 60 * (x * (1 - x) + y * (1 - y))),
    "heat-forced": (
        _heat.forcing,
        (x, t),
        4 * pi**2 * (1 - 2 * t) * exp(-4 * pi**2 * t**2) * sin(2 * pi * x),
    ),
}


def divergence_of_flux(a, u):
    return diff(a * diff(u, x), x) + diff(a * diff(u, y), y)


def operator(name):
    """What the source must equal: the left-hand side, applied to the fields as stated."""
    field = {key: formula for key, (_, _, formula) in FIELDS.items()}
    u = field[f"{name} u"]
    return {
        "pinv": lambda: -divergence_of_flux(field["pinv a"], u),
        "hinv": lambda: diff(u, t) - divergence_of_flux(field["hinv a"], u),
        "poisson": lambda: -diff(u, x, 2) - diff(u, y, 2),
        "heat-forced": lambda: diff(u, t) - diff(u, x, 2),
        "heat": lambda: diff(u, t) - diff(u, x, 2),
        "wave": lambda: diff(u, t, 2) - diff(u, x, 2),
        "ebinv": lambda: diff(u, t, 2) + diff(u, x, 4),
        "winv": lambda: diff(u, t, 2) - 4 * diff(u, x, 2),
    }[name]()


@pytest.mark.parametrize("key", FIELDS)
def test_exact_functions_are_those_stated(key):
    function, symbols, stated = FIELDS[key]
    assert simplify(symbolic(function, *symbols) - stated) == 0
    name, field = key.split()
    assert benchmark(name).exact[field] is function


@pytest.mark.parametrize("name", SOURCES)
def test_sources_are_those_stated_and_follow_from_the_fields(name):
    function, symbols, stated = SOURCES[name]
    assert simplify(symbolic(function, *symbols) - stated) == 0
    assert simplify(operator(name) - stated) == 0


@pytest.mark.parametrize("name", ["heat", "wave", "ebinv", "winv"])
def test_the_others_need_no_source(name):
    assert simplify(operator(name)) == 0


def test_stokes_needs_no_forcing_with_this_sign_of_the_pressure():
    u, v, p = (FIELDS[f"stokes {name}"][2] for name in "uvp")
    assert simplify(diff(u, x) + diff(v, y)) == 0
    for velocity, axis in ((u, x), (v, y)):
        assert simplify(-diff(velocity, x, 2) - diff(velocity, y, 2) + diff(p, axis)) == 0
    assert simplify(diff(u, x, 2) + diff(u, y, 2) + diff(p, x)) != 0


def test_the_misprint_of_a_published_suite_is_not_ours():
    wrong = SOURCES["pinv"][2].subs(2 * x - 1, 2 * x + 1)
    assert simplify(operator("pinv") - wrong) != 0


@pytest.mark.parametrize("key", FIELDS)
def test_exact_functions_compute_in_double_precision(key):
    function, symbols, stated = FIELDS[key]
    points = np.random.default_rng(0).random((len(symbols), 50))
    found = function(*points)
    assert found.dtype == np.float64 and found.shape == (50,)
    expected = sympy.lambdify(symbols, stated, "numpy")(*points)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
