"""What a user can see of a fit's quality without knowing the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpinn.training import Fit, NoiseEstimate
from unpinn.unlearning._mixture import log_likelihood

_FRESH_SEED = 7_919


@dataclass(frozen=True)
class Evidence:
    """Agreement with readings and with the equations, away from where they were enforced.

    Arguments:
        readings: mean log-likelihood of readings under the estimated noise; of held-out ones
            where there are any.
        residual: root mean square of the equations' residuals, in units of the equations' sizes,
            at points that training has not seen.
        held_out: whether the readings were held out.
    """

    readings: float
    residual: float
    held_out: bool

    def better_than(self, other: Evidence, slack: float) -> bool:
        """Better in sum: a gain in log-likelihood may pay for a loss in log residual, and back."""
        return self.total > other.total - slack

    @property
    def total(self) -> float:
        """Log-likelihood a reading minus the log of the residual."""
        return self.readings - float(np.log(max(self.residual, 1e-12)))


def evidence_of(fit: Fit, noise: NoiseEstimate, scales: dict[str, float]) -> Evidence:
    """Judge a fit under a fixed noise estimate and fixed equation sizes."""
    rows = fit.details.get("held_out")
    observations = fit.observations
    held_out = bool(rows)
    if held_out:
        observations = observations.take(np.asarray(rows))
    misfits = fit.misfits(observations)
    points = _fresh_points(fit)
    residual = fit.residual(points)
    sizes = np.concatenate(
        [np.full(e.components, scales.get(e.name, 1.0)) for e in fit.problem.equation_expressions]
    )
    size = float(np.sqrt(np.mean((residual / sizes) ** 2)))
    return Evidence(log_likelihood(misfits, noise), size, held_out)


def _fresh_points(fit: Fit) -> np.ndarray:
    from unpinn.problem import Sobol

    return Sobol(1024).draw(fit.problem.coordinates, _FRESH_SEED)
