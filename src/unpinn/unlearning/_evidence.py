r"""What a user can see of a fit's quality without knowing the truth.

Two things: how likely the readings are under the noise that the fit itself suggests (of held-out
readings where there are any), and how well the equations hold at points that training has not
seen. Two fits are compared reading by reading, so that chance can be told from a difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpinn.problem import Sobol
from unpinn.training import Fit
from unpinn.unlearning._mixture import fit_mixture, log_densities

_FRESH_POINTS = 1024
_FRESH_SEED = 7_919
# Standard errors within which a difference is chance; a likelihood ratio that is no evidence,
# however sure its sign (twenty to one is where Kass and Raftery, 1995, begin to call it strong);
# and residuals too small to argue about.
_CHANCE = 2.0
# A larger network follows the noise of the readings that it was trained on a little further: with
# d more numbers in play it gains d / 2 nats, which is (d / 2)^(1/2) standard errors.
_OPTIMISM = 4.0
_STRONG = 3.0
_NEGLIGIBLE = 0.05
_TOLERATED = 2.0


@dataclass(frozen=True)
class Evidence:
    """How two fits of the same readings compare by what a user can see.

    Arguments:
        gain: mean gain in log-likelihood a reading, from the first fit to the second.
        error: the gain's standard error.
        residual_before: the equations' residual at fresh points, in units of their sizes.
        residual_after: the same of the second fit.
        held_out: whether the readings were held out of both trainings.
        readings: how many were compared.
    """

    gain: float
    error: float
    residual_before: float
    residual_after: float
    held_out: bool
    readings: int

    @classmethod
    def of(
        cls, before: np.ndarray, after: np.ndarray, residuals: tuple[float, float],
        held_out: bool = False,
    ) -> Evidence:  # fmt: skip
        """From the log-likelihoods of the same readings, (N,), and both residuals."""
        difference = after - before
        count = len(difference)
        error = float(difference.std(ddof=1) / np.sqrt(count)) if count > 1 else float("inf")
        return cls(float(difference.mean()), error, *residuals, held_out, count)

    @property
    def accepts(self) -> bool:
        """Whether the second fit is no worse: in likelihood beyond chance, nor in residual."""
        return self._no_worse(_CHANCE)

    @property
    def spares(self) -> bool:
        """Whether the second fit, whose network is smaller, is not clearly worse."""
        return self._no_worse(_CHANCE if self.held_out else _OPTIMISM)

    def _no_worse(self, chance: float) -> bool:
        tolerated = max(_TOLERATED * self.residual_before, _NEGLIGIBLE)
        return bool(
            self.gain > -max(chance * self.error, _STRONG / self.readings)
            and np.isfinite(self.residual_after)
            and self.residual_after <= tolerated
        )

    @property
    def rises(self) -> bool:
        """Whether the second fit makes the readings likelier, beyond chance and by enough."""
        return self.gain > max(_CHANCE * self.error, _STRONG / self.readings)


def compare_evidence(before: Fit, after: Fit) -> Evidence:
    """Compare two fits of the same readings."""
    scales = before.details.get("scales", {})
    residuals = (fresh_residual(before, scales), fresh_residual(after, scales))
    held_out = bool(before.details.get("held_out"))
    return Evidence.of(_log_likelihoods(before), _log_likelihoods(after), residuals, held_out)


def fresh_residual(fit: Fit, scales: dict[str, float]) -> float:
    """Root mean square of the residuals over the equations' sizes, where they were not enforced."""
    points = Sobol(_FRESH_POINTS).draw(fit.problem.coordinates, _FRESH_SEED)
    sizes = np.concatenate(
        [np.full(e.components, scales.get(e.name, 1.0)) for e in fit.problem.equation_expressions]
    )
    return float(np.sqrt(np.mean((fit.residual(points) / sizes) ** 2)))


def _log_likelihoods(fit: Fit) -> np.ndarray:
    """Of each judged reading, under the noise that the fit's own misfits suggest."""
    misfits = fit.misfits()
    rows = fit.details.get("held_out")
    if not rows:
        return log_densities(misfits, fit_mixture(misfits).noise)
    judged = np.zeros(len(misfits), bool)
    judged[np.asarray(rows)] = True
    return log_densities(misfits[judged], fit_mixture(misfits[~judged]).noise)
