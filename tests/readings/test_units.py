"""Units: known sizes, there and back, and what is no unit."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from unpinn._errors import UserError
from unpinn.readings import convert, parse_unit
from unpinn.readings._units import _PREFIXABLE, _PREFIXES, _UNITS

KNOWN = [
    ("mm", "m", 0.001), ("km/h", "m/s", 1 / 3.6), ("µm²", "m^2", 1e-12), ("ug/L", "kg/m^3", 1e-6),
    ("W/(m K)", "W m^-1 K^-1", 1), ("kN", "lbf", 224.80894309971), ("psi", "Pa", 6894.757293168),
    ("µm/m", "1", 1e-6), ("GPa", "N/mm^2", 1000), ("d", "h", 24), ("L/min", "m3/s", 1 / 60_000),
    ("deg", "rad", 0.0174532925199), ("m**2", "m2", 1), ("1/s", "Hz", 1), ("kWh", "MJ", 3.6),
    ("%", "1", 0.01), ("mol/L", "mol/m^3", 1000), ("cm s^-1", "m/s", 0.01),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "factor"), KNOWN)
def test_known_sizes(source, target, factor):
    assert convert(source, target).factor == pytest.approx(factor, rel=1e-10)
    assert convert(source, target).offset == 0


@pytest.mark.parametrize(
    ("source", "target", "warm", "wanted"),
    [("degC", "K", 20, 293.15), ("degF", "°C", 212, 100), ("K", "degF", 0, -459.67)],
)
def test_temperatures_are_shifted(source, target, warm, wanted):
    found = convert(source, target)
    assert warm * found.factor + found.offset == pytest.approx(wanted)


names = st.sampled_from(sorted(_UNITS)) | st.builds(
    str.__add__, st.sampled_from(sorted(_PREFIXES)), st.sampled_from(sorted(_PREFIXABLE))
)
atoms = st.builds(lambda name, power: f"{name}^{power}", names, st.sampled_from([-3, -1, 1, 2]))
units = st.lists(atoms, min_size=1, max_size=4).map(" ".join)


@given(units)
def test_a_unit_written_in_base_units_and_back_is_the_identity(unit):
    parsed = parse_unit(unit)
    assume(max(map(abs, parsed.dimensions)) <= 12)
    base = ("m", "kg", "s", "A", "K", "mol", "cd")
    plain = " ".join(f"{b}^{p}" for b, p in zip(base, parsed.dimensions, strict=True) if p) or "1"
    there, back = convert(unit, plain), convert(plain, unit)
    assert there.factor * back.factor == pytest.approx(1.0, rel=1e-14)
    assert float(parsed.factor) == there.factor


@pytest.mark.parametrize(
    "text", ["furlong", "m//s", "m^", "(m", "m)", "m^99", "*", "m s /", "m" * 80, "kkm", "0"]
)
def test_what_is_no_unit_is_said_to_be_none(text):
    with pytest.raises(UserError, match="unit"):
        parse_unit(text)
