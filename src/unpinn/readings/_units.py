"""Units of measurement: enough of them to turn a file's numbers into the problem's.

A unit is a factor over the SI base units, the powers of those, and for temperatures an offset.
Factors are exact fractions, so that a conversion there and back is the identity to rounding.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from unpinn._errors import UserError

# Powers of metre, kilogram, second, ampere, kelvin, mole and candela.
Dimensions = tuple[int, ...]

_NONE: Dimensions = (0,) * 7
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_RAISED = re.compile("[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_TOKEN = re.compile(r"\s*(?:(\^?[-+]?\d+)|([A-Za-zµμ°ÅΩℓ%′″]+)|(\*\*|[*/·×()]))")
_LONGEST = 60
_LARGEST_POWER = 12


@dataclass(frozen=True)
class Unit:
    """A unit: one of it is `factor` (plus `offset`) in SI base units.

    Arguments:
        text: as it was written.
        factor: its size in SI base units.
        dimensions: powers of metre, kilogram, second, ampere, kelvin, mole, candela.
        offset: where its zero lies, for temperatures.
    """

    text: str
    factor: Fraction
    dimensions: Dimensions = _NONE
    offset: Fraction = Fraction(0)


@dataclass(frozen=True)
class Conversion:
    """A file's number times `factor` plus `offset` is the problem's.

    Arguments:
        factor: multiplies.
        offset: is added afterwards.
        source: the file's unit, "" where nobody said.
        target: the problem's unit, "" where nobody said.
    """

    factor: float = 1.0
    offset: float = 0.0
    source: str = ""
    target: str = ""

    @property
    def identity(self) -> bool:
        """Whether numbers stay as they are."""
        return self.factor == 1.0 and self.offset == 0.0

    def describe(self) -> str:
        """In words, as in "mm -> m"."""
        if self.source and self.target:
            return f"{self.source} -> {self.target}" if self.source != self.target else self.target
        if self.identity:
            return self.target or self.source
        shift = f" {'+' if self.offset > 0 else '-'} {abs(self.offset):g}" if self.offset else ""
        return f"x {self.factor:g}{shift}"


def convert(source: str, target: str) -> Conversion:
    """How numbers in one unit become numbers in another.

    >>> convert("mm", "m").factor
    0.001
    >>> round(convert("degC", "K").offset, 2)
    273.15
    >>> convert("km/h", "m/s").factor * 36
    10.0
    """
    old, new = parse_unit(source), parse_unit(target)
    if old.dimensions != new.dimensions:
        raise UserError(f"{source!r} cannot be converted to {target!r}: they measure other things")
    factor = old.factor / new.factor
    offset = (old.offset - new.offset) / new.factor
    return Conversion(float(factor), float(offset), source, target)


def parse_unit(text: str) -> Unit:
    """Read a unit such as "mm", "kg m^-3", "W/(m K)", "°C" or "µm²".

    >>> parse_unit("kN").factor
    Fraction(1000, 1)
    >>> parse_unit("W/(m K)").dimensions  # metre, kilogram, second, ampere, kelvin, ...
    (1, 1, -3, 0, -1, 0, 0)
    """
    clean = text.strip()
    if clean in _SHIFTED:
        factor, offset = _SHIFTED[clean]
        return Unit(text, factor, (0, 0, 0, 0, 1, 0, 0), offset)
    if clean in ("", "1", "-"):
        return Unit(text, Fraction(1))
    if len(clean) > _LONGEST:
        raise UserError(f"{clean[:20]!r}... is too long for a unit")
    tokens = _tokens(clean)
    factor, dimensions, rest = _product(tokens, text)
    if rest:
        raise _unknown(text)
    return Unit(text, factor, dimensions)


def _tokens(text: str) -> list[str]:
    plain = _RAISED.sub(lambda found: "^" + found.group().translate(_SUPERSCRIPTS), text)
    tokens, place = [], 0
    while place < len(plain.rstrip()):
        found = _TOKEN.match(plain, place)
        if found is None:
            raise _unknown(text)
        tokens.append("".join(part for part in found.groups() if part))
        place = found.end()
    return tokens


def _product(tokens: list[str], text: str) -> tuple[Fraction, Dimensions, list[str]]:
    """Factors up to a closing bracket or the end; a slash divides by the next factor alone."""
    factor, dimensions, sign = Fraction(1), _NONE, 1
    wants = True
    while tokens and tokens[0] != ")":
        token, *tokens = tokens
        if token in ("*", "·", "×", "/"):
            if wants and not (token == "/" and factor == 1 and dimensions == _NONE):
                raise _unknown(text)
            sign, wants = (-1 if token == "/" else 1), True
            continue
        if token == "(":
            size, powers, tokens = _product(tokens, text)
            if not tokens:
                raise _unknown(text)
            tokens = tokens[1:]
        else:
            size, powers = _atom(token, text)
        power, tokens = _power(tokens, text)
        factor *= size ** (sign * power)
        dimensions = tuple(d + sign * power * p for d, p in zip(dimensions, powers, strict=True))
        sign, wants = 1, False
    if wants:
        raise _unknown(text)
    return factor, dimensions, tokens


def _power(tokens: list[str], text: str) -> tuple[int, list[str]]:
    if tokens and tokens[0] == "**":
        tokens = tokens[1:]
        if not tokens:
            raise _unknown(text)
    elif not (tokens and re.fullmatch(r"\^?[-+]?\d+", tokens[0])):
        return 1, tokens
    try:
        power = int(tokens[0].lstrip("^"))
    except ValueError:
        raise _unknown(text) from None
    if abs(power) > _LARGEST_POWER:
        raise _unknown(text)
    return power, tokens[1:]


def _atom(name: str, text: str) -> tuple[Fraction, Dimensions]:
    if name.isdigit() and len(name) <= _LARGEST_POWER and int(name) > 0:
        return Fraction(int(name)), _NONE
    if name in _UNITS:
        return _UNITS[name]
    for length in (2, 1):
        prefix, unit = name[:length], name[length:]
        if prefix in _PREFIXES and unit in _PREFIXABLE:
            size, dimensions = _UNITS[unit]
            return size * _PREFIXES[prefix], dimensions
    raise _unknown(text)


def _unknown(text: str) -> UserError:
    shown = text if len(text) <= _LONGEST else text[:20] + "..."
    return UserError(
        f"the unit {shown!r} is not known; write one such as 'mm', 'm/s', 'kg m^-3' or 'degC', or "
        "give the factor as a number"
    )


def _table() -> dict[str, tuple[Fraction, Dimensions]]:
    """Each unit's size and dimensions."""
    one = Fraction(1)
    metre, second, kelvin = (1, 0, 0, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0, 0), (0, 0, 0, 0, 1, 0, 0)
    mass, area, volume = (0, 1, 0, 0, 0, 0, 0), (2, 0, 0, 0, 0, 0, 0), (3, 0, 0, 0, 0, 0, 0)
    force, pressure, energy = (
        (1, 1, -2, 0, 0, 0, 0),
        (-1, 1, -2, 0, 0, 0, 0),
        (2, 1, -2, 0, 0, 0, 0),
    )
    power, current, charge = (2, 1, -3, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0, 0), (0, 0, 1, 1, 0, 0, 0)
    voltage, resistance = (2, 1, -3, -1, 0, 0, 0), (2, 1, -3, -2, 0, 0, 0)
    amount, light, flux = (0, 0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 0, 0, 1), (0, 1, -2, -1, 0, 0, 0)
    rows = [
        (metre, {"m": one, "in": Fraction(254, 10_000), "ft": Fraction(3048, 10_000),
                 "mi": Fraction(1_609_344, 1000), "Å": Fraction(1, 10**10)}),
        (area, {"ha": Fraction(10_000)}),
        (volume, {"L": Fraction(1, 1000), "l": Fraction(1, 1000)}),
        (mass, {"g": Fraction(1, 1000), "t": Fraction(1000), "lb": Fraction(45_359_237, 10**8)}),
        (second, {"s": one, "sec": one, "min": Fraction(60), "h": Fraction(3600),
                  "hr": Fraction(3600), "d": Fraction(86_400), "day": Fraction(86_400),
                  "yr": Fraction(31_557_600)}),
        (tuple(-p for p in second), {"Hz": one}),
        (current, {"A": one}), (kelvin, {"K": one}), (amount, {"mol": one}), (light, {"cd": one}),
        (force, {"N": one, "lbf": Fraction(44_482_216_152_605, 10**13)}),
        (pressure, {"Pa": one, "bar": Fraction(100_000), "atm": Fraction(101_325),
                    "psi": Fraction(44_482_216_152_605, 10**13) / Fraction(254, 10_000) ** 2}),
        (energy, {"J": one, "cal": Fraction(4184, 1000), "Wh": Fraction(3600),
                  "eV": Fraction(1_602_176_634, 10**28)}),
        (power, {"W": one}), (charge, {"C": one}), (voltage, {"V": one}),
        (resistance, {"Ω": one, "ohm": one}), (flux, {"T": one}),
        (_NONE, {"rad": one, "deg": Fraction(math.pi / 180), "°": Fraction(math.pi / 180),
                 "%": Fraction(1, 100), "ppm": Fraction(1, 10**6), "ppb": Fraction(1, 10**9)}),
    ]  # fmt: skip
    return {name: (size, powers) for powers, units in rows for name, size in units.items()}


_UNITS = _table()
_PREFIXABLE = (
    "m", "g", "s", "A", "K", "mol", "cd", "Hz", "N", "Pa", "bar", "J", "Wh", "eV", "cal", "W", "C",
    "V", "Ω", "ohm", "T", "L", "l", "rad", "t",
)  # fmt: skip
_PREFIXES = {
    name: Fraction(10) ** power
    for name, power in {
        "Y": 24, "Z": 21, "E": 18, "P": 15, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "da": 1,
        "d": -1, "c": -2, "m": -3, "u": -6, "µ": -6, "μ": -6, "n": -9, "p": -12, "f": -15, "a": -18,
    }.items()
}  # fmt: skip
_ICE, _FAHRENHEIT = Fraction(27_315, 100), Fraction(5, 9)
_SHIFTED = {
    **dict.fromkeys(("degC", "°C", "℃", "celsius", "Celsius"), (Fraction(1), _ICE)),
    **dict.fromkeys(
        ("degF", "°F", "℉", "fahrenheit", "Fahrenheit"),
        (_FAHRENHEIT, _ICE - 32 * _FAHRENHEIT),
    ),
}
