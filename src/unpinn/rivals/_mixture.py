"""mixture: good and bad readings as two Gaussians, whose levels and share are trained along."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from unpinn.rivals import _checks as checks
from unpinn.rivals._judged import partition_of
from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._warm_up import WarmUp, go_on, warm_up
from unpinn.rivals._working import working_misfits
from unpinn.training import Fit, Mixture, NoiseEstimate
from unpinn.unlearning import fit_mixture, posterior_of

# Where the warm-up sees one kind of readings, a second is offered: rarer, and worse.
_OFFERED_RATIO, _OFFERED_SHARE = 3.0, 0.1


def _run(task: Task) -> Fit:
    natural = checks.choice(task, "mixture", "scale", ("matched", "natural")) == "natural"
    start = warm_up(task)
    low, high, share = _first_guess(start)
    # A good reading's square is matched to least squares, so that it weighs against the equations
    # as much as in the other methods.
    unit = 1.0 if natural else 2 * low**2
    extras = {
        "log_low": math.log(low),
        "gap": math.log(math.expm1(math.log(high / low))),
        "logit_high": math.log(share / (1 - share)),
    }
    fit = go_on(task, start, Mixture(floor=start.floor, unit=unit), extras)
    return _judged(fit, start).with_details(unit=unit)


def _first_guess(start: WarmUp) -> tuple[float, float, float]:
    noise = fit_mixture(start.misfits).noise
    low = max(noise.low, start.floor)
    if noise.components == 1:
        return low, _OFFERED_RATIO * low, _OFFERED_SHARE
    return low, max(noise.high, 1.2 * low), min(max(noise.share, 0.01), 0.99)


def learned_noise(fit: Fit, floor: float) -> NoiseEstimate:
    """The levels and the share of bad readings that a fit has learned, in working units."""
    extras = {name: float(np.asarray(value)) for name, value in fit.model.extras.items()}
    low = math.exp(extras["log_low"])
    high = low * math.exp(np.logaddexp(0.0, extras["gap"]))
    share = 1 / (1 + math.exp(-extras["logit_high"]))
    return NoiseEstimate(math.hypot(low, floor), math.hypot(high, floor), share, 2, 0.0)


def _judged(fit: Fit, start: WarmUp) -> Fit:
    """The fit with what it has learned about the readings."""
    noise = learned_noise(fit, start.floor)
    posterior = posterior_of(working_misfits(fit), noise)
    levels = {"low": start.natural(noise.low), "high": start.natural(noise.high)}
    rule = f"two kinds of errors were trained along, {noise.share:.0%} bad; more likely good"
    partition = partition_of(fit, posterior < 0.5, rule, posterior=posterior)
    return replace(fit, partition=partition).with_details(noise={**levels, "share": noise.share})


MIXTURE = register(
    Method(
        "mixture",
        "two-Gaussian likelihood with learned levels and share",
        _run,
        options={"scale": "matched"},
    )
)
