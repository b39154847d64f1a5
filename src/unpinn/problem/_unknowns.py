"""What is to be found besides the fields: numbers and coefficient fields."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from unpinn._errors import UserError


@dataclass(frozen=True)
class Scalar:
    r"""An unknown number, trained in a transformed unit and reported in the user's own.

    With `log=True` the trained quantity is $\log|k|$; with two bounds $(l, h)$ it is the logit of
    the position between them (in logarithms if both are asked for); with one bound a softplus
    keeps to its side; otherwise it is $k/s$ with a scale $s$.

    Arguments:
        name: what equations call it.
        initial: the value training starts from, in the user's unit.
        bounds: lowest and highest value, either may be None.
        log: for quantities known only to an order of magnitude.

    >>> Scalar("speed", initial=1.0, bounds=(0, None)).natural(0.0).item() > 0
    True
    """

    name: str
    initial: float | int
    bounds: Sequence[float | int | None] = (None, None)
    log: bool = False

    def __post_init__(self):
        object.__setattr__(self, "initial", _number(self.initial))
        if not math.isfinite(self.initial):
            raise UserError(f"unknown {self.name!r} needs a finite number as its initial value")
        low, high = self._checked_bounds()
        object.__setattr__(self, "bounds", (low, high))
        if low is not None and high is not None and not low < high:
            raise UserError(
                f"unknown {self.name!r} has bounds {self.bounds}: low must be below high"
            )
        above = low is None or self.initial > low
        below = high is None or self.initial < high
        if not (above and below):
            raise UserError(
                f"unknown {self.name!r} starts at {self.initial}, which is not strictly inside its "
                f"bounds {self.bounds}; move the initial value or the bounds"
            )
        if self.log and (self.initial == 0 or any(b is not None and b <= 0 for b in self.bounds)):
            raise UserError(
                f"unknown {self.name!r} is on a log scale, so its initial value must not be zero "
                "and its bounds must be above zero"
            )
        if self.log and self.initial < 0 and self.bounds != (None, None):
            raise UserError(
                f"unknown {self.name!r} is negative on a log scale, so it can have no bounds"
            )

    @property
    def scale(self) -> float:
        """The size of one trained unit where the transformation is linear."""
        return abs(self.initial) if self.initial != 0 else 1.0

    def raw(self, scaled: bool = True) -> float:
        """The trained value at which training starts (`natural` gives `initial` back)."""
        low, high = self._ends()
        start = math.log(abs(self.initial)) if self.log else float(self.initial)
        if low is not None and high is not None:
            return math.log(start - low) - math.log(high - start)
        if low is not None:
            return _inverse_softplus((start - low) / self._unit(scaled))
        if high is not None:
            return _inverse_softplus((high - start) / self._unit(scaled))
        return start / self._unit(scaled)

    def natural(self, raw: Any, scaled: bool = True) -> jax.Array:
        """The value in the user's unit from the trained one."""
        raw = jnp.asarray(raw)
        low, high = self._ends()
        unit = self._unit(scaled)
        if low is not None and high is not None:
            value = low + (high - low) * jax.nn.sigmoid(raw)
        elif low is not None:
            value = low + unit * jax.nn.softplus(raw)
        elif high is not None:
            value = high - unit * jax.nn.softplus(raw)
        else:
            value = unit * raw
        return math.copysign(1.0, self.initial) * jnp.exp(value) if self.log else value

    def at_bound(self, value: float, tolerance: float = 1e-3) -> bool:
        """Whether a found value has run into a bound, which means the bound decided it."""
        low, high = self._ends()
        if self.log and (low is not None or high is not None):
            value = math.log(value) if value > 0 else -math.inf
        span = high - low if low is not None and high is not None else self._unit(scaled=True)
        near_low = low is not None and value - low <= tolerance * span
        near_high = high is not None and high - value <= tolerance * span
        return near_low or near_high

    def _checked_bounds(self) -> tuple[float | None, float | None]:
        try:
            low, high = (None if bound is None else _number(bound) for bound in self.bounds)
        except (TypeError, ValueError):
            raise UserError(
                f"unknown {self.name!r} needs a pair (low, high) as bounds, not {self.bounds!r}"
            ) from None
        # An infinite bound bounds nothing.
        return None if low == -math.inf else low, None if high == math.inf else high

    def _unit(self, scaled: bool) -> float:
        return self.scale if scaled and not self.log else 1.0

    def _ends(self) -> tuple[float | None, float | None]:
        """The bounds in the unit that is transformed: logarithms on a log scale."""
        low, high = self.bounds
        if not self.log:
            return low, high
        return (None if low is None else math.log(low), None if high is None else math.log(high))


def _number(value: Any) -> float:
    """A number as Python's own (so that records compare and save), not a number otherwise."""
    return float(value) if isinstance(value, numbers.Real) else math.nan


def _inverse_softplus(distance: float) -> float:
    return distance + math.log(-math.expm1(-distance))


@dataclass(frozen=True)
class Field:
    """An unknown coefficient field: a column of the shared network, with derivatives.

    Arguments:
        name: what equations call it.
        scale: its expected size, used to make the network's output of order one.
        offset: its expected middle.

    >>> Field("conductivity", scale=400.0).scale
    400.0
    """

    name: str
    scale: float | int = 1.0
    offset: float | int = 0.0

    def __post_init__(self):
        if not (math.isfinite(self.scale) and self.scale > 0 and math.isfinite(self.offset)):
            raise UserError(f"unknown field {self.name!r} needs a finite scale above zero")
