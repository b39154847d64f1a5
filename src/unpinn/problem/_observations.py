"""Readings: where, what was read, and what is known about the instrument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.problem._fingerprint import fingerprint
from unpinn.problem._problem import Problem
from unpinn.problem._sampling import check_inside


@dataclass(frozen=True, eq=False)
class Observations:
    """N readings of some measured quantities.

    Arguments:
        points: where, (N, dimensions), in the order of the problem's coordinates.
        values: what was read, (N, quantities); NaN where a reading lacks a quantity.
        quantities: what the columns are: fields, or the problem's measurements.
        sigma: the known standard deviation of each reading's error, (N,) or None.
        sensor: which instrument made each reading, (N,) of strings or numbers, or None.

    Build them with `observe`, which checks them against the problem.
    """

    points: np.ndarray
    values: np.ndarray
    quantities: tuple[str, ...]
    sigma: np.ndarray | None = None
    sensor: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def present(self) -> np.ndarray:
        """Which entries were read, (N, quantities)."""
        return np.isfinite(self.values)

    def take(self, index: Any) -> Observations:
        """The readings at an index or boolean mask, in that order."""
        if isinstance(index, (int, np.integer)):
            index = [index]
        pick = lambda array: None if array is None else array[index]  # noqa: E731
        return replace(
            self,
            points=self.points[index],
            values=self.values[index],
            sigma=pick(self.sigma),
            sensor=pick(self.sensor),
        )

    @property
    def fingerprint(self) -> str:
        """A digest of the readings."""
        return fingerprint((self.quantities, self.points, self.values, self.sigma, self.sensor))

    def _repr_html_(self) -> str:
        from unpinn.report import observations_html

        return observations_html(self)


def observe(
    problem: Problem,
    points: Any,
    values: Any,
    quantities: Sequence[str] | str | None = None,
    sigma: Any = None,
    sensor: Any = None,
) -> Observations:
    """Readings from arrays, checked against the problem.

    Arguments:
        problem: what they are readings of.
        points: (N, dimensions), or a mapping from coordinate to (N,) array.
        values: (N,) or (N, quantities), or a mapping from quantity to (N,) array; NaN marks a
            quantity that this reading lacks.
        quantities: which fields or measurements the columns are; all fields unless told.
        sigma: known standard deviation, one number or (N,).
        sensor: (N,) identifiers.
    """
    if isinstance(values, Mapping):
        if quantities is not None and {*values} != {*_tuple(quantities)}:
            raise UserError(
                f"the values are of {', '.join(values)}, but the quantities are said to be "
                f"{', '.join(_tuple(quantities))}"
            )
        quantities = tuple(values)
        values = _columns(values, quantities, "values")
    if isinstance(points, Mapping):
        missing = [name for name in problem.coordinates if name not in points]
        if missing:
            raise UserError(f"the readings lack the coordinate {missing[0]!r}")
        points = _columns(points, tuple(problem.coordinates), "points")
    points = _matrix(points, "points")
    values = _matrix(values, "values")
    names = _quantities(problem, quantities, values.shape[1])
    if points.shape[1] != problem.dimension:
        raise UserError(
            f"points have {points.shape[1]} columns, but the problem has the coordinates "
            f"{', '.join(problem.coordinates)}"
        )
    if len(points) != len(values):
        raise UserError(f"there are {len(points)} points but {len(values)} values")
    if len(points) == 0:
        raise UserError("there are no readings")
    if np.isinf(values).any():
        raise UserError(f"row {int(np.flatnonzero(np.isinf(values).any(1))[0])} reads infinity")
    empty = ~np.isfinite(values).any(axis=1)
    if empty.any():
        raise UserError(
            f"{int(empty.sum())} readings have no value at all, first in row "
            f"{int(np.flatnonzero(empty)[0])}; drop those rows"
        )
    check_inside(points, problem.coordinates, "the readings")
    return Observations(points, values, names, _sigma(sigma, len(points)), _sensor(sensor, points))


def _tuple(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _columns(table: Mapping[str, Any], names: tuple[str, ...], what: str) -> np.ndarray:
    columns = [_matrix(table[name], f"{what} of {name!r}") for name in names]
    lengths = {name: column.shape for name, column in zip(names, columns, strict=True)}
    if any(shape != (len(columns[0]), 1) for shape in lengths.values()):
        raise UserError(
            f"the {what} of the readings must be columns of one length, not "
            + ", ".join(
                f"{name}: {len(column)}" for name, column in zip(names, columns, strict=True)
            )
        )
    return np.concatenate(columns, axis=1) if columns else np.empty((0, 0))


def _matrix(array: Any, what: str) -> np.ndarray:
    try:
        # A copy, so that what the caller does to the array later changes no record.
        array = np.array(array, np.float64)
    except (TypeError, ValueError):
        raise UserError(f"the {what} of the readings must be numbers") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise UserError(f"the {what} of the readings must have two axes, not shape {array.shape}")
    return array


def _quantities(problem: Problem, names: Any, columns: int) -> tuple[str, ...]:
    known = problem.measured_expressions
    names = _tuple(problem.fields if names is None else names)
    for name in names:
        if name not in known:
            raise UserError(
                f"{name!r} is neither a field nor a measurement of the problem "
                f"(those are {', '.join(known)})"
            )
        if known[name].components != 1:
            raise UserError(f"measurement {name!r} gives more than one value a point; split it")
    if len(names) != columns or len(set(names)) != len(names):
        raise UserError(f"the values have {columns} columns, but the quantities are {names}")
    return names


def _sigma(sigma: Any, count: int) -> np.ndarray | None:
    if sigma is None:
        return None
    try:
        sigma = np.broadcast_to(np.asarray(sigma, np.float64), (count,)).copy()
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"sigma must be one number or {count} of them") from None
    if not (np.isfinite(sigma).all() and (sigma > 0).all()):
        raise UserError("sigma must be finite and above zero for every reading")
    return sigma


def _sensor(sensor: Any, points: np.ndarray) -> np.ndarray | None:
    if sensor is None:
        return None
    sensor = np.asarray(sensor)
    if sensor.shape != (len(points),):
        raise UserError(f"there are {len(points)} readings but {sensor.shape} sensor identifiers")
    return sensor
