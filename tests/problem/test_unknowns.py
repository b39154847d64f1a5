"""Unknown numbers: transformed for training, reported in the user's own unit."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from unpinn import precision
from unpinn._errors import UserError
from unpinn.problem import Field, Scalar

sizes = st.floats(1e-6, 1e6)
signs = st.sampled_from([-1.0, 1.0])
raws = st.floats(-40, 40)


@st.composite
def unknowns(draw) -> tuple:
    """What makes a valid unknown: free, bounded on either side or both, in logarithms or not."""
    log = draw(st.booleans())
    sides = draw(st.sampled_from(["none", "low", "high", "both"]))
    # Bounds from a thousandth of the value's own size away, so that rounding is not the subject.
    below, above = (draw(st.floats(1e-3, 1e3)) for _ in range(2))
    if log:
        sign = draw(signs) if sides == "none" else 1.0
        initial = sign * draw(sizes)
        low, high = initial / (1 + below), initial * (1 + above)
    else:
        initial = draw(signs) * draw(sizes)
        low, high = initial - below * abs(initial), initial + above * abs(initial)
    bounds = (
        low if sides in ("low", "both") else None,
        high if sides in ("high", "both") else None,
    )
    return initial, bounds, log


KINDS = {
    "free": Scalar("k", 3.0),
    "free negative": Scalar("k", -3.0),
    "free zero": Scalar("k", 0.0),
    "above zero": Scalar("k", 2.0, bounds=(0, None)),
    "below zero": Scalar("k", -2.0, bounds=(None, 0)),
    "between": Scalar("k", 0.3, bounds=(-1.0, 1.0)),
    "logarithmic": Scalar("k", 1e-6, log=True),
    "logarithmic negative": Scalar("k", -1e-6, log=True),
    "logarithmic from": Scalar("k", 1e-6, bounds=(1e-9, None), log=True),
    "logarithmic up to": Scalar("k", 1e-6, bounds=(None, 1.0), log=True),
    "logarithmic between": Scalar("k", 1e-6, bounds=(1e-9, 1.0), log=True),
}
every_kind = pytest.mark.parametrize("scalar", KINDS.values(), ids=KINDS)
both_ways = pytest.mark.parametrize("scaled", [True, False])


# -- laws -------------------------------------------------------------------------------------


@given(unknowns(), st.booleans())
def test_training_starts_at_the_initial_value(unknown, scaled):
    scalar = Scalar("k", *unknown)
    with precision.scope("float64"):
        start = scalar.natural(scalar.raw(scaled), scaled).item()
    assert start == pytest.approx(scalar.initial, rel=1e-9)


@every_kind
@both_ways
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_training_starts_at_the_initial_value_in_either_precision(scalar, scaled, kind):
    with precision.scope(kind):
        start = scalar.natural(jnp.asarray(scalar.raw(scaled)), scaled)
        assert start.dtype == kind
        rel = 5e-6 if kind == "float32" else 1e-12
        assert start.item() == pytest.approx(scalar.initial, rel=rel, abs=0.0)


@given(unknowns(), raws, st.booleans())
def test_no_trained_value_leaves_the_bounds(unknown, raw, scaled):
    scalar = Scalar("k", *unknown)
    with precision.scope("float64"):
        value = scalar.natural(raw, scaled).item()
    low, high = scalar.bounds
    slack = 1e-12 * abs(scalar.initial)
    assert math.isfinite(value)
    assert low is None or value >= low - slack
    assert high is None or value <= high + slack


@given(unknowns(), raws, raws)
def test_a_larger_trained_value_moves_one_way(unknown, first, second):
    scalar = Scalar("k", *unknown)
    assume(abs(first - second) > 1e-3)
    first, second = sorted((first, second))
    with precision.scope("float64"):
        smaller, larger = (scalar.natural(raw).item() for raw in (first, second))
    # Bounded above alone, the distance to the bound is trained; a negative size grows downwards.
    falls = scalar.bounds[0] is None and scalar.bounds[1] is not None
    falls = falls or (scalar.log and scalar.initial < 0)
    # Far in the tail of a sigmoid two values may round to the same one.
    assert (smaller >= larger) if falls else (smaller <= larger)
    if scalar.bounds == (None, None):
        assert smaller != larger


@every_kind
@both_ways
def test_the_transformation_can_be_trained_through(scalar, scaled):
    with precision.scope("float64"):
        raw = scalar.raw(scaled)
        slope = jax.grad(lambda raw: scalar.natural(raw, scaled))(raw)
        step = 1e-6
        up, down = (scalar.natural(raw + s, scaled) for s in (step, -step))
        assert slope.item() == pytest.approx(((up - down) / (2 * step)).item(), rel=1e-5)
        assert slope != 0


def test_a_log_scale_never_changes_sign():
    with precision.scope("float64"):
        assert (Scalar("k", -2.0, log=True).natural(jnp.linspace(-30, 30, 61)) < 0).all()
        assert (Scalar("k", 2.0, log=True).natural(jnp.linspace(-30, 30, 61)) > 0).all()


def test_a_step_on_a_log_scale_is_a_factor():
    scalar = Scalar("k", 1e-4, log=True)
    with precision.scope("float64"):
        ten = scalar.natural(scalar.raw() + math.log(10.0)).item()
    assert ten == pytest.approx(1e-3, rel=1e-12)


def test_a_log_scale_between_bounds_is_even_in_decades():
    with precision.scope("float64"):
        middle = Scalar("k", 1e-6, bounds=(1e-8, 1.0), log=True).natural(0.0).item()
    assert middle == pytest.approx(1e-4, rel=1e-12)


# -- units ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scalar", "raw"),
    [(Scalar("k", 400.0), 1.0), (Scalar("k", -1e-9), -1.0), (Scalar("k", 0.0), 0.0)],
)
def test_scaled_numbers_are_trained_in_units_of_their_start(scalar, raw):
    assert scalar.raw(scaled=True) == raw
    assert scalar.raw(scaled=False) == scalar.initial


def test_the_paper_faithful_number_is_trained_as_it_is():
    scalar = Scalar("c", initial=2.0)
    assert scalar.natural(7.0, scaled=False).item() == 7.0
    assert scalar.natural(7.0, scaled=True).item() == 14.0


def test_a_one_sided_bound_is_scale_free():
    small, large = (Scalar("k", size, bounds=(0, None)) for size in (1e-7, 1e7))
    assert small.raw() == pytest.approx(large.raw(), rel=1e-12)


@pytest.mark.parametrize(
    ("bounds", "initial"),
    [((-1.0, 1e-17), 0.0), ((0.0, 1.0), 1e-300), ((0.0, None), 1e-300), ((None, 0.0), -1e-12)],
)
def test_a_start_beside_a_bound_has_a_finite_trained_value(bounds, initial):
    scalar = Scalar("k", initial, bounds)
    assert math.isfinite(scalar.raw())
    with precision.scope("float64"):
        assert scalar.natural(scalar.raw()).item() == pytest.approx(initial, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("scalar", "value", "expected"),
    [
        (Scalar("k", 1.0, (0, None)), 1e-5, True),
        (Scalar("k", 1.0, (0, None)), 0.1, False),
        (Scalar("k", 1.0, (None, 2.0)), 1.9999, True),
        (Scalar("k", 1.0, (0.0, 2.0)), 1.999, True),
        (Scalar("k", 1.0, (0.0, 2.0)), 1.0, False),
        (Scalar("k", 1.0), 1e9, False),
        (Scalar("k", 1e-3, (1e-6, 1e2), log=True), 1e-5, False),
        (Scalar("k", 1e-3, (1e-6, 1e2), log=True), 1.01e-6, True),
        (Scalar("k", 1e-3, (1e-6, 1e2), log=True), 99.9, True),
        (Scalar("k", 1e-3, (1e-6, None), log=True), 1.0001e-6, True),
        (Scalar("k", 1e-3, (1e-6, None), log=True), 2e-6, False),
        (Scalar("k", -1e-3, log=True), -5.0, False),
    ],
)
def test_a_found_value_at_its_bound_is_noticed(scalar, value, expected):
    assert scalar.at_bound(value) is expected


# -- statements -------------------------------------------------------------------------------


def test_infinite_bounds_bound_nothing():
    assert Scalar("k", 1.0, (-math.inf, math.inf)).bounds == (None, None)
    assert Scalar("k", 1.0, (0, math.inf)) == Scalar("k", 1.0, (0.0, None))


def test_numbers_are_kept_as_plain_ones():
    scalar = Scalar("k", np.float64(2.0), [np.float64(1.0), 3])
    assert type(scalar.initial) is float
    assert [type(bound) for bound in scalar.bounds] == [float, float]
    assert hash(scalar) == hash(Scalar("k", 2, (1, 3)))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (dict(initial=math.nan), "'k' needs a finite number as its initial value"),
        (dict(initial=math.inf), "'k' needs a finite number as its initial value"),
        (dict(initial=1.0, bounds=(2.0, 1.0)), "low must be below high"),
        (dict(initial=1.0, bounds=(1.0, 1.0)), "low must be below high"),
        (dict(initial=1.0, bounds=(math.nan, 2.0)), "low must be below high"),
        (dict(initial=1.0, bounds=(math.nan, None)), "not strictly inside its bounds"),
        (dict(initial=1.0, bounds=(1.0, None)), "not strictly inside its bounds"),
        (dict(initial=1.0, bounds=(None, 0.5)), "not strictly inside its bounds"),
        (dict(initial=5.0, bounds=(0.0, 2.0)), "not strictly inside its bounds"),
        (dict(initial=1.0, bounds=(1.0,)), "needs a pair (low, high) as bounds"),
        (dict(initial=1.0, bounds=(1.0, 2.0, 3.0)), "needs a pair (low, high) as bounds"),
        (dict(initial=0.0, log=True), "on a log scale, so its initial value must not be zero"),
        (dict(initial=1.0, log=True, bounds=(0.0, None)), "its bounds must be above zero"),
        (dict(initial=-1.0, log=True, bounds=(None, 2.0)), "so it can have no bounds"),
    ],
)
def test_contradictions_are_told(arguments, told):
    with pytest.raises(UserError) as caught:
        Scalar("k", **arguments)
    assert "unknown 'k'" in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize("options", [dict(scale=0.0), dict(scale=-1), dict(scale=math.inf)])
def test_a_field_needs_a_size(options):
    with pytest.raises(UserError, match="unknown field 'a' needs a finite scale above zero"):
        Field("a", **options)


def test_a_field_needs_a_finite_middle():
    with pytest.raises(UserError, match="unknown field 'a'"):
        Field("a", offset=math.nan)
    assert Field("a", scale=2, offset=-3) == Field("a", scale=2.0, offset=-3.0)
