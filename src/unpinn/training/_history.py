"""What every epoch showed: each term, the total, the unknown numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class History:
    """Rows, one an epoch, with named columns; NaN where a stage did not compute a term.

    Arguments:
        names: of the columns; the first is "total".
        rows: (epochs, columns).
        stages: for each stage its kind and the row it starts at.
    """

    names: tuple[str, ...]
    rows: np.ndarray
    stages: tuple[tuple[str, int], ...] = ()

    @classmethod
    def empty(cls, names: Sequence[str]) -> History:
        """No rows yet."""
        return cls(tuple(names), np.empty((0, len(names)), np.float64))

    def starting(self, kind: str) -> History:
        """With a stage begun."""
        return History(self.names, self.rows, (*self.stages, (kind, len(self.rows))))

    def extended(self, names: Sequence[str], rows: np.ndarray) -> History:
        """With more rows, whose columns may be fewer."""
        wide = np.full((len(rows), len(self.names)), np.nan)
        for column, name in enumerate(names):
            wide[:, self.names.index(name)] = rows[:, column]
        return History(self.names, np.concatenate([self.rows, wide]), self.stages)

    def joined(self, other: History) -> History:
        """This history followed by another."""
        names = self.names + tuple(n for n in other.names if n not in self.names)
        both = History.empty(names).extended(self.names, self.rows)
        both = both.extended(other.names, other.rows)
        later = tuple((kind, start + len(self.rows)) for kind, start in other.stages)
        return History(names, both.rows, self.stages + later)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.rows[:, self.names.index(name)]

    def __len__(self) -> int:
        return len(self.rows)

    def last(self) -> dict[str, float]:
        """The last row by name."""
        if not len(self.rows):
            return {}
        return dict(zip(self.names, self.rows[-1].tolist(), strict=True))
