"""What an instrument shows, where that is not simply a field at a point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpinn._errors import UserError


@dataclass(frozen=True)
class Measurement:
    r"""An observation operator: a function of fields, perhaps averaged around the point.

    An accelerometer is `Measurement(lambda u: u.tt)`, a strain gauge
    `Measurement(lambda u: u.x)`. With a `footprint` the reading is the mean of the function over
    a box around its point, by Gauss-Legendre quadrature:
    $m(\xi) = \sum_q w_q\, g(\xi + o_q)$.

    Arguments:
        function: a function of fields, unknowns and coordinates.
        footprint: full width of the average in each averaged coordinate.
        nodes: quadrature points along each averaged coordinate.

    >>> Measurement(lambda u: u, footprint={"x": 0.1}).offsets(("x", "t")).shape
    (3, 2)
    """

    function: Callable[..., Any]
    footprint: Mapping[str, float | int] | None = None
    nodes: int = 3

    def __post_init__(self):
        for name, width in (self.footprint or {}).items():
            if not (math.isfinite(width) and width > 0):
                raise UserError(
                    f"a measurement's footprint in {name!r} must be a finite width above zero"
                )
        if self.nodes < 1:
            raise UserError("a measurement's footprint needs one quadrature node or more")

    def offsets(self, coordinates: tuple[str, ...]) -> np.ndarray:
        """Where the function is evaluated around the point, (q, dimensions)."""
        return self._rule(coordinates)[0]

    def weights(self, coordinates: tuple[str, ...]) -> np.ndarray:
        """The quadrature weights, which add up to one."""
        return self._rule(coordinates)[1]

    def _rule(self, coordinates: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        footprint = dict(self.footprint or {})
        unknown = [name for name in footprint if name not in coordinates]
        if unknown:
            raise UserError(
                f"a measurement is averaged over {unknown[0]!r}, which is no coordinate "
                f"({', '.join(coordinates)})"
            )
        node, weight = np.polynomial.legendre.leggauss(self.nodes)
        axes, factors = [], []
        for name in coordinates:
            averaged = name in footprint
            axes.append(0.5 * footprint[name] * node if averaged else np.zeros(1))
            factors.append(0.5 * weight if averaged else np.ones(1))
        mesh = np.meshgrid(*axes, indexing="ij")
        products = np.meshgrid(*factors, indexing="ij")
        offsets = np.stack([part.ravel() for part in mesh], axis=1)
        return offsets, np.prod([part.ravel() for part in products], axis=0)
