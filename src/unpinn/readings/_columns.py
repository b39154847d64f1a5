"""Which column of a file is which coordinate or quantity, and in which unit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unpinn._errors import UserError
from unpinn.problem import Problem
from unpinn.readings._tables import Table
from unpinn.readings._units import Conversion, Unit, convert, parse_unit

_BRACKETED = re.compile(r"^(.*?)\s*[\[(]\s*([^\[\]]*?)\s*[\])]$")
_SENSOR_NAMES = ("sensor", "sensor_id", "sensor id")
# What a problem's unit, or a conversion, can be told as.
UnitSpec = str | float | int | Sequence[float | int]


@dataclass(frozen=True)
class Roles:
    """Which of a table's columns are read, as what, and how they are converted.

    Arguments:
        coordinates: for each coordinate the column.
        quantities: for each quantity that the table has the column.
        conversions: for each of those the change of unit.
        sigma: the column of standard deviations, or None.
        sensor: the column of sensor identifiers, or None.
        ignored: columns that are not read.
    """

    coordinates: Mapping[str, str]
    quantities: Mapping[str, str]
    conversions: Mapping[str, Conversion]
    sigma: str | None
    sensor: str | None
    ignored: tuple[str, ...]

    @property
    def wanted(self) -> tuple[str, ...]:
        """All columns to be read, each once."""
        extra = [name for name in (self.sigma, self.sensor) if name is not None]
        return tuple(dict.fromkeys([*self.coordinates.values(), *self.quantities.values(), *extra]))


def split_unit(column: str) -> tuple[str, str | None]:
    """A column's name without its unit, and the unit.

    >>> split_unit("displacement [mm]")
    ('displacement', 'mm')
    >>> split_unit("u")
    ('u', None)
    """
    found = _BRACKETED.match(column)
    return (found.group(1), found.group(2)) if found else (column, None)


def assign(
    table: Table,
    problem: Problem,
    columns: Mapping[str, str] | None,
    units: Mapping[str, UnitSpec] | None,
    sigma: Any,
    sensor: str | None,
) -> Roles:
    """Find every coordinate and at least one quantity among a table's columns."""
    columns, units = dict(columns or {}), dict(units or {})
    for what, told in (*columns.items(), ("sensor", "" if sensor is None else sensor)):
        if not isinstance(told, str):
            raise UserError(f"the column of {what!r} must be told by its name, not as {told!r}")
    measurable = tuple(problem.measured_expressions)
    known = (*problem.coordinates, *measurable)
    for name in (*columns, *units):
        # A problem file may tell the units of its unknown numbers too; they are for reports.
        if name not in known and not (name in units and name in problem.symbols.scalars):
            raise UserError(
                f"{name!r} is no coordinate, field or measurement of the problem "
                f"({', '.join(known)}){_hint(name, known)}"
            )
    found = {name: _find(table, name, columns.get(name)) for name in known}
    for name in problem.coordinates:
        if found[name] is None:
            raise UserError(
                f"{table.name} has no column for the coordinate {name!r}; {_columns_of(table)}, "
                f"so say which it is, as in columns={{{name!r}: ...}}{_hint(name, table.columns)}"
            )
    quantities = {name: str(found[name]) for name in measurable if found[name] is not None}
    if not quantities:
        raise UserError(
            f"{table.name} has no column for any of {', '.join(measurable)}; {_columns_of(table)}, "
            f"so say which is which, as in columns={{{measurable[0]!r}: ...}}"
        )
    coordinates = {name: str(found[name]) for name in problem.coordinates}
    sigma_column = _sigma_column(table, sigma, {*coordinates.values(), *quantities.values()})
    sensor_column = _sensor_column(table, sensor, {*coordinates.values(), *quantities.values()})
    used = {*coordinates.values(), *quantities.values(), sigma_column, sensor_column}
    conversions = {
        name: _conversion(table, name, column, units.get(name))
        for name, column in {**coordinates, **quantities}.items()
    }
    _refuse_mixed(table, coordinates, conversions, "coordinates")
    _refuse_mixed(table, quantities, conversions, "quantities")
    ignored = tuple(name for name in table.columns if name not in used and name)
    return Roles(coordinates, quantities, conversions, sigma_column, sensor_column, ignored)


def sigma_factor(table: Table, roles: Roles) -> float:
    """What standard deviations are multiplied by: the same as the quantities, without offset."""
    factors = {roles.conversions[name].factor for name in roles.quantities}
    if len(factors) > 1:
        raise UserError(
            f"{table.name}: one sigma cannot serve quantities in different units; convert the "
            "file so that they share one"
        )
    own = _told(table, str(roles.sigma))
    first = roles.conversions[next(iter(roles.quantities))]
    if own is None or not first.target or own.text == first.source:
        return factors.pop()
    try:
        return convert(own.text, first.target).factor
    except UserError as error:
        raise UserError(f"{table.name}, column {roles.sigma!r}: {error}") from None


def _find(table: Table, name: str, told: str | None) -> str | None:
    """The column of that exact name, or of that name followed by a unit in brackets."""
    wanted = name if told is None else told
    if wanted in table.columns:
        return wanted
    similar = [column for column in table.columns if split_unit(column)[0] == wanted]
    if len(similar) > 1:
        raise UserError(
            f"{table.name} has several columns for {name!r} ({_shown(similar, 4)}); say "
            f"which, as in columns={{{name!r}: {similar[0]!r}}}"
        )
    if not similar and told is not None:
        raise UserError(
            f"{table.name} has no column {told!r}; {_columns_of(table)}{_hint(told, table.columns)}"
        )
    return similar[0] if similar else None


def _sigma_column(table: Table, sigma: Any, used: set[str]) -> str | None:
    if isinstance(sigma, str):
        return _find(table, "sigma", sigma)
    if sigma is not None:
        return None
    found = _find(table, "sigma", None)
    return None if found in used else found


def _sensor_column(table: Table, sensor: str | None, used: set[str]) -> str | None:
    if sensor is not None:
        if sensor not in table.columns:
            raise UserError(
                f"{table.name} has no column {sensor!r} of sensor identifiers; "
                f"{_columns_of(table)}{_hint(sensor, table.columns)}"
            )
        return sensor
    for name in table.columns:
        if name.lower() in _SENSOR_NAMES and name not in used:
            return name
    return None


def _conversion(table: Table, name: str, column: str, spec: UnitSpec | None) -> Conversion:
    told = _told(table, column)
    where = f"{table.name}, column {column!r}"
    if spec is None:
        return Conversion(source=told.text if told else "")
    if isinstance(spec, bool) or not isinstance(spec, (str, int, float)):
        return _by_number(where, name, spec, told)
    if isinstance(spec, (int, float)):
        return _by_number(where, name, (spec, 0.0), told)
    source, arrow, target = (part.strip() for part in spec.partition("->"))
    if not arrow:
        source, target = "", source
    try:
        if told and source and parse_unit(source) != parse_unit(told.text):
            a, b = parse_unit(source), parse_unit(told.text)
            if (a.factor, a.offset, a.dimensions) != (b.factor, b.offset, b.dimensions):
                raise UserError(f"the file says {told.text!r} but units says {source!r}")
        source = source or (told.text if told else "")
        parse_unit(target)
        return convert(source, target) if source else Conversion(target=target)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _by_number(where: str, name: str, spec: Any, told: Unit | None) -> Conversion:
    try:
        factor, offset = (float(part) for part in spec)
    except (TypeError, ValueError, OverflowError):
        factor = float("nan")
        offset = 0.0
    if not (0 < abs(factor) < float("inf") and abs(offset) < float("inf")):
        raise UserError(
            f"units[{name!r}] must be a unit such as 'm', a change such as 'mm -> m', a factor "
            f"other than zero, or a pair (factor, offset), not {spec!r}"
        )
    return Conversion(factor, offset, told.text if told else "", "")


def _told(table: Table, column: str) -> Unit | None:
    """The unit that the file itself tells, if it is one."""
    text = table.units.get(column) or split_unit(column)[1]
    if not text:
        return None
    try:
        return parse_unit(text)
    except UserError:
        return None  # brackets may hold other things than units


def _refuse_mixed(table: Table, names: Mapping[str, str], conversions, what: str) -> None:
    """Different units of one kind side by side, with nobody saying what the problem's is."""
    taken: dict[tuple[int, ...], tuple[str, Unit]] = {}
    for name, column in names.items():
        conversion = conversions[name]
        told = _told(table, column)
        if told is None or conversion.target or not conversion.identity:
            continue
        other = taken.setdefault(told.dimensions, (column, told))
        if (other[1].factor, other[1].offset) != (told.factor, told.offset):
            raise UserError(
                f"{table.name} has {what} in mixed units ({other[0]!r} and {column!r}); say which "
                f"the problem is stated in, as in units={{{name!r}: {other[1].text!r}, ...}}"
            )


def _columns_of(table: Table) -> str:
    shown = _shown(table.columns)
    return f"it has the columns {shown}" if shown else "it has no columns"


def _shown(columns: Sequence[str], most: int = 20) -> str:
    """The first columns' names; what is no header can be one long name, or thousands."""
    names = [name if len(name) <= 60 else f"{name[:57]}..." for name in columns[:most]]
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return ", ".join(map(repr, names)) + more


def _hint(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
