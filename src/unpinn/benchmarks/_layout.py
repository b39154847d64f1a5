"""Where readings are taken: parts of the domain, or random rows of a large grid."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unpinn.problem import Grid, Sampler
from unpinn.problem._sampling import Box


@dataclass(frozen=True)
class Patch:
    """A part of the domain with readings in it.

    Arguments:
        sampler: how they are laid out.
        box: the part's ends, for the coordinates in which it is smaller than the domain.

    >>> Patch(Grid(2), {"x": (0.2, 0.8)}).draw({"x": (0.0, 1.0)}).ravel().tolist()
    [0.2, 0.8]
    """

    sampler: Sampler
    box: Box = field(default_factory=dict)

    def draw(self, domain: Box) -> np.ndarray:
        """The points, (N, dimensions); layouts are regular, so they need no seed."""
        return self.sampler.draw({**domain, **self.box}, 0)


@dataclass(frozen=True)
class GridRows:
    """Random rows of a grid, the same for every seed: the other rows are the test set.

    Arguments:
        grid: the whole grid.
        count: how many rows are drawn without replacement.
        selection: which draw.
    """

    grid: Grid
    count: int
    selection: int = 0

    def rows(self) -> np.ndarray:
        """The numbers of the drawn rows, increasing."""
        total = int(np.prod(self.grid.counts))
        drawn = np.random.default_rng(self.selection).choice(total, self.count, replace=False)
        return np.sort(drawn)

    def draw(self, box: Box, seed: int = 0) -> np.ndarray:
        """The rows' points."""
        return self.grid.draw(box, seed)[self.rows()]
