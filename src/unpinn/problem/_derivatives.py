"""Names of derivatives, and the values that stand for a field inside an equation."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from unpinn._errors import UserError

# The factorials in a Taylor series of a higher order leave the range of single precision.
HIGHEST_ORDER = 30


class DerivativeError(UserError, AttributeError):
    """An equation asks a field for something that is no derivative of it."""


@dataclass(frozen=True)
class Derivative:
    r"""One derivative of one field, $\partial^\alpha u$ or $\Delta u$.

    Arguments:
        field: the field's name.
        orders: how often each coordinate is differentiated ($\alpha$), or "laplacian" for the sum
            of the pure second derivatives in the space coordinates, which costs one channel
            instead of one a direction.
    """

    field: str
    orders: tuple[int, ...] | Literal["laplacian"]

    @property
    def order(self) -> int:
        """The total order."""
        return 2 if isinstance(self.orders, str) else sum(self.orders)

    def __lt__(self, other: Derivative) -> bool:
        # JAX sorts a dictionary's keys, so that derivatives can leave a compiled function.
        return (self.field, str(self.orders)) < (other.field, str(other.orders))


def parse_attribute(attribute: str, coordinates: Sequence[str]) -> tuple[int, ...] | None:
    """Read an attribute such as `xxt` as counts of coordinates; None where it is none.

    >>> parse_attribute("xxt", ("x", "t"))
    (2, 1)
    >>> parse_attribute("x1x2", ("x1", "x2"))
    (1, 1)
    """
    splits: list[tuple[str, ...]] = []

    def split(rest: str, found: tuple[str, ...]) -> None:
        if not rest:
            splits.append(found)
        for name in coordinates:
            if rest.startswith(name):
                split(rest[len(name) :], (*found, name))

    split(attribute, ())
    counts = {tuple(found.count(name) for name in coordinates) for found in splits}
    if len(counts) > 1:
        raise DerivativeError(
            f"the derivative {attribute!r} can be read in more than one way with the coordinates "
            f"{', '.join(coordinates)}; write it as a call such as u.d({coordinates[0]!r}, 2)"
        )
    return counts.pop() if counts else None


class FieldValue:
    """A field inside an equation: an array over points whose attributes are its derivatives.

    `u` is the value, `u.x`, `u.tt`, `u.xy` are derivatives, `u.laplacian` is the Laplacian in the
    space coordinates, and `u.d("radius", 2, "t")` spells out derivatives in coordinates with
    long names. Arithmetic and comparison work on it directly; a function of `jax.numpy` takes
    `u.value` (JAX itself refuses foreign objects).
    """

    __slots__ = ("_coordinates", "_field", "_look_up")
    __array_priority__ = 1000

    def __init__(
        self,
        field: str,
        coordinates: tuple[str, ...],
        look_up: Callable[[Derivative], Any],
    ):
        self._field = field
        self._coordinates = coordinates
        self._look_up = look_up

    @property
    def value(self):
        """The field's values, one a point."""
        return self._look_up(Derivative(self._field, (0,) * len(self._coordinates)))

    @property
    def laplacian(self):
        """The sum of the pure second derivatives in the space coordinates."""
        return self._look_up(Derivative(self._field, "laplacian"))

    def d(self, *wanted: str | int):
        """The derivative by coordinate names, each optionally followed by its order."""
        counts = dict.fromkeys(self._coordinates, 0)
        last: str | None = None
        for item in wanted:
            if isinstance(item, str) and item in counts:
                counts[item] += 1
                last = item
            elif isinstance(item, int) and last is not None and item >= 1:
                counts[last] += item - 1
                last = None
            else:
                raise DerivativeError(
                    f"{self._field}.d{wanted!r} must be coordinate names, each followed by an "
                    f"order of 1 or more or by nothing; the coordinates are "
                    f"{', '.join(self._coordinates)}"
                )
        return self._derivative(tuple(counts.values()))

    def __getattr__(self, name: str):
        if name in ARRAY_ATTRIBUTES:
            return getattr(self.value, name)
        if name.startswith("_"):
            raise AttributeError(name)
        orders = parse_attribute(name, self._coordinates)
        if orders is None:
            close = difflib.get_close_matches(name, [*self._coordinates, "laplacian"], n=1)
            hint = f"; did you mean {self._field}.{close[0]}?" if close else ""
            raise DerivativeError(
                f"{self._field}.{name} is not a derivative: the coordinates are "
                f"{', '.join(self._coordinates)}{hint}"
            )
        return self._derivative(orders)

    def _derivative(self, orders: tuple[int, ...]):
        if sum(orders) > HIGHEST_ORDER:
            raise DerivativeError(
                f"a derivative of {self._field} of order {sum(orders)} is asked for, but a network "
                f"can give no more than order {HIGHEST_ORDER}"
            )
        return self._look_up(Derivative(self._field, orders))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, *_, **__):
        return np.asarray(self.value)

    def __jax_array__(self):
        return jnp.asarray(self.value)

    def __add__(self, other):
        return self.value + _plain(other)

    def __radd__(self, other):
        return _plain(other) + self.value

    def __sub__(self, other):
        return self.value - _plain(other)

    def __rsub__(self, other):
        return _plain(other) - self.value

    def __mul__(self, other):
        return self.value * _plain(other)

    def __rmul__(self, other):
        return _plain(other) * self.value

    def __truediv__(self, other):
        return self.value / _plain(other)

    def __rtruediv__(self, other):
        return _plain(other) / self.value

    def __pow__(self, other):
        return self.value ** _plain(other)

    def __rpow__(self, other):
        return _plain(other) ** self.value

    def __neg__(self):
        return -self.value

    def __pos__(self):
        return self.value

    def __abs__(self):
        return abs(self.value)

    # Comparison is by value, so a field is no key of a dictionary.
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other):
        return self.value == _plain(other)

    def __ne__(self, other):
        return self.value != _plain(other)

    def __lt__(self, other):
        return self.value < _plain(other)

    def __le__(self, other):
        return self.value <= _plain(other)

    def __gt__(self, other):
        return self.value > _plain(other)

    def __ge__(self, other):
        return self.value >= _plain(other)

    def __repr__(self) -> str:
        return f"<field {self._field}({', '.join(self._coordinates)})>"


ARRAY_ATTRIBUTES = frozenset({"shape", "dtype", "ndim", "size", "aval", "weak_type", "sharding"})


def _plain(other):
    return other.value if isinstance(other, FieldValue) else other
