r"""How well each reading agrees with the fields and with the equations.

$M_i = \|u_\theta(\xi_i) - \bar u_i\| + \alpha\,\|R(\xi_i)\|$, with $\alpha = 0.001$ in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpinn._errors import UserError


@dataclass(frozen=True, eq=False)
class Scores:
    """What the partition is made from: plain arrays, whoever's model they come from.

    Arguments:
        misfits: prediction minus reading, (N, quantities), NaN where missing.
        residuals: the equations' residuals at the readings, (N, components).
        residual_weight: the paper's alpha.
    """

    misfits: np.ndarray
    residuals: np.ndarray
    residual_weight: float = 0.001

    def __post_init__(self):
        if len(self.misfits) != len(self.residuals):
            raise UserError(
                f"there are {len(self.misfits)} misfits but {len(self.residuals)} residuals"
            )
        if not self.residual_weight >= 0:
            raise UserError("the residual's weight in the score must be zero or more")
        if not np.isfinite(self.residuals).all():
            raise UserError("the model's residual is not finite at some reading; was it trained?")

    def take(self, rows: np.ndarray) -> Scores:
        """Those of some readings."""
        return Scores(self.misfits[rows], self.residuals[rows], self.residual_weight)

    @property
    def misfit(self) -> np.ndarray:
        """The misfits' norm at each reading."""
        return np.sqrt(np.nansum(self.misfits**2, axis=1))

    @property
    def residual(self) -> np.ndarray:
        """The residuals' norm at each reading."""
        return np.sqrt(np.sum(self.residuals**2, axis=1))

    @property
    def score(self) -> np.ndarray:
        """The composite score M."""
        return self.misfit + self.residual_weight * self.residual
