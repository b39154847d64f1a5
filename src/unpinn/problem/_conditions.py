"""Boundary, initial and interior conditions, each with its own points and weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.problem._sampling import Box, Grid, Sampler, Sobol

Place = Mapping[str, float | int | str]

# How far beyond the domain's end a face may lie, by rounding, in units of the domain's width.
_SLACK = 1e-9


@dataclass(frozen=True)
class Condition:
    """Something that holds on a part of the domain: a residual that should vanish there.

    Arguments:
        name: what histories and errors call it.
        residual: a function of fields, unknowns and coordinates, as in an equation.
        at: the faces it holds on: a mapping from a coordinate to a value, "low" or "high", or
            several of them; "walls" for every face of the space coordinates; None for the whole
            domain.
        points: how each face is sampled (in the remaining coordinates).
        weight: a factor on its term in the loss.

    >>> Condition("fixed end", lambda u: u, at={"x": 0.0}).name
    'fixed end'
    """

    name: str
    residual: Callable[..., Any]
    at: Place | Sequence[Place] | str | None = None
    points: Sampler | None = None
    weight: float | int = 1.0

    def __post_init__(self):
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise UserError(f"condition {self.name!r} needs a finite weight of zero or more")

    def faces(self, box: Box, time: str | None) -> list[dict[str, float]]:
        """The faces as mappings from coordinates to numbers."""
        found = self._faces(box, time)
        if not found:
            raise UserError(f"condition {self.name!r} holds nowhere: at={self.at!r} has no face")
        return found

    def _faces(self, box: Box, time: str | None) -> list[dict[str, float]]:
        if self.at is None:
            return [{}]
        if isinstance(self.at, str):
            if self.at != "walls":
                raise UserError(
                    f"condition {self.name!r} has at={self.at!r}; write 'walls' or a mapping such "
                    "as {'x': 0.0}"
                )
            return [{n: float(end)} for n in box if n != time for end in box[n]]
        places = [self.at] if isinstance(self.at, Mapping) else list(self.at)
        return [self._face(place, box) for place in places]

    def kind(self, box: Box, time: str | None) -> str:
        """Whether it is "initial", "boundary" or "interior"."""
        faces = self.faces(box, time)
        if time is not None and all(set(face) == {time} for face in faces):
            first, last = box[time]
            if all(face[time] - first <= _SLACK * (last - first) for face in faces):
                return "initial"
        return "boundary" if all(faces) else "interior"

    def draw(self, box: Box, time: str | None, seed: int) -> np.ndarray:
        """The points at which it is enforced, (n, dimensions)."""
        blocks = []
        for number, face in enumerate(self.faces(box, time)):
            free = {name: ends for name, ends in box.items() if name not in face}
            if not free:
                blocks.append(np.array([[face[name] for name in box]], np.float64))
                continue
            sampler = self.points or (Grid(100) if len(free) == 1 else Sobol(256))
            try:
                drawn = sampler.draw(free, seed + number)
            except UserError as error:
                raise UserError(f"condition {self.name!r}: {error}") from None
            columns = dict(zip(free, drawn.T, strict=True))
            blocks.append(
                np.stack([columns.get(n, np.full(len(drawn), face.get(n, 0.0))) for n in box], 1)
            )
        return np.concatenate(blocks)

    def _face(self, place: Place, box: Box) -> dict[str, float]:
        face = {}
        for name, value in place.items():
            if name not in box:
                raise UserError(
                    f"condition {self.name!r} is placed at {name!r}, which is no coordinate "
                    f"({', '.join(box)})"
                )
            low, high = box[name]
            number = {"low": low, "high": high}.get(value) if isinstance(value, str) else value
            slack = _SLACK * (high - low)
            if number is None or not low - slack <= number <= high + slack:
                raise UserError(
                    f"condition {self.name!r} is placed at {name} = {value!r}, outside "
                    f"[{low:g}, {high:g}]"
                )
            face[name] = float(number)
        return face
