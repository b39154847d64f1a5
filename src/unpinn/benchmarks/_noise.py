"""The errors of simulated readings: how large, how many, and of which kind."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unpinn._errors import UserError

KINDS = ("gaussian", "student", "biased", "clustered")
# The heaviest tails of a whole number of degrees of freedom that still have a variance.
FREEDOM = 3
REGIONS = 3


class Errors(NamedTuple):
    """The errors of N readings (N, components), their levels (N,), and which are bad (N,)."""

    values: np.ndarray
    sigma: np.ndarray
    is_bad: np.ndarray


@dataclass(frozen=True)
class Noise:
    r"""A share of bad readings among good ones.

    Good readings have Gaussian errors of standard deviation `low`. The errors of bad ones have the
    root mean square `high` in every kind, so that the kinds compare on equal terms:

    - "gaussian": $\sigma N(0, 1)$;
    - "student": heavy tails, $\sigma t_3 / \sqrt 3$;
    - "biased": shifted one way, $\sigma |N(0, 1)|$;
    - "clustered": Gaussian, but broken instruments instead of broken readings: whole places, lying
      together in three regions.

    Arguments:
        high: the level of bad readings.
        low: the level of good ones.
        share: how many of all readings are bad, between 0 and 1.
        kind: one of the above.

    >>> Noise(high=1.0, low=0.1, share=0.6).draw(np.zeros((5, 1)), 2, seed=42).is_bad.sum()
    np.int64(3)
    """

    high: float
    low: float
    share: float
    kind: str = "gaussian"

    def __post_init__(self):
        for name in ("high", "low", "share"):
            value = getattr(self, name)
            if not isinstance(value, (int, float, np.number)) or not math.isfinite(value):
                raise UserError(f"noise needs a finite number as {name}, not {value!r}")
        if self.low < 0 or self.high < self.low:
            raise UserError(
                f"noise needs levels 0 <= low <= high, not low = {self.low:g} and "
                f"high = {self.high:g}"
            )
        if not 0 <= self.share <= 1:
            raise UserError(f"noise needs a share of bad readings in [0, 1], not {self.share:g}")
        if self.kind not in KINDS:
            close = difflib.get_close_matches(str(self.kind), KINDS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UserError(
                f"noise of kind {self.kind!r} is not known; choose one of {', '.join(KINDS)}{hint}"
            )

    def __str__(self) -> str:
        return f"{self.kind}, {self.share:.0%} at {self.high:.4g} and the rest at {self.low:.4g}"

    def draw(self, places: np.ndarray, components: int, seed: int) -> Errors:
        """Draw the errors of readings: the same seed spoils the same readings in the same way.

        Arguments:
            places: where the readings were taken in space, (N, space dimensions).
            components: how many quantities a reading has; all of a bad reading's are bad.
            seed: of the split and the errors.
        """
        count = len(places)
        generator = np.random.default_rng(seed)
        order = generator.permutation(count)
        if self.kind == "clustered":
            order = _by_region(places, order)
        is_bad = np.zeros(count, bool)
        is_bad[order[: round(self.share * count)]] = True
        sigma = np.where(is_bad, self.high, self.low).astype(np.float64)
        unit = generator.standard_normal((count, components))
        if self.kind == "biased":
            unit[is_bad] = np.abs(unit[is_bad])
        elif self.kind == "student":
            shape = (int(is_bad.sum()), components)
            # A t variable's variance is v / (v - 2).
            spread = math.sqrt(FREEDOM / (FREEDOM - 2))
            unit[is_bad] = generator.standard_t(FREEDOM, shape) / spread
        return Errors(sigma[:, None] * unit, sigma, is_bad)


def instruments(places: np.ndarray) -> np.ndarray:
    """A number for the place of each reading, (N,): readings at one place share an instrument."""
    return np.unique(np.round(places, 9), axis=0, return_inverse=True)[1].ravel()


def _by_region(places: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Readings by their place's distance from the nearest of a few centres, place after place."""
    number = instruments(places)
    # The first instruments of a random order of readings are random centres.
    _, first = np.unique(number[order], return_index=True)
    centres = places[order[np.sort(first)[:REGIONS]]]
    width = np.ptp(places, axis=0)
    scaled = (places[:, None, :] - centres[None]) / np.where(width > 0, width, 1.0)
    distance = np.round(np.linalg.norm(scaled, axis=2).min(axis=1), 9)
    # Ties between places are broken by chance, but a place's readings stay together.
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    place_rank = np.full(number.max() + 1, len(order))
    np.minimum.at(place_rank, number, rank)
    return np.lexsort((rank, place_rank[number], distance))
