r"""What a misfit costs: the negative log-likelihoods a reading's error can be given.

Every penalty maps misfits r (n, q), weights w (n, q) that add up to one, and the model, to one
number. Rivals that survive noise by their loss differ from the plain method by nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from unpinn._errors import UserError

if TYPE_CHECKING:
    from unpinn.network import Model

_LOG_TWO_PI = 1.8378770664093453


@dataclass(frozen=True)
class Squared:
    r"""Least squares, $\sum w r^2$."""

    name: str = "squared"

    def __call__(self, misfit: jax.Array, weight: jax.Array, model: Model) -> jax.Array:
        """The penalty."""
        return jnp.sum(weight * misfit**2)


@dataclass(frozen=True)
class Absolute:
    r"""Least absolute deviations, $\sum w \sqrt{r^2 + s^2} - s$, smooth within s of zero."""

    name: str = "absolute"
    smooth: float = 1e-3

    def __call__(self, misfit: jax.Array, weight: jax.Array, model: Model) -> jax.Array:
        """The penalty."""
        return jnp.sum(weight * (jnp.sqrt(misfit**2 + self.smooth**2) - self.smooth))


@dataclass(frozen=True)
class Huber:
    r"""Huber's loss: $r^2$ within a width and $2\delta|r|-\delta^2$ beyond."""

    width: float
    name: str = "huber"

    def __post_init__(self):
        _positive(self.name, "width", self.width)

    def __call__(self, misfit: jax.Array, weight: jax.Array, model: Model) -> jax.Array:
        """The penalty."""
        size = jnp.abs(misfit)
        inside = jnp.minimum(size, self.width)
        return jnp.sum(weight * inside * (2 * size - inside))


@dataclass(frozen=True)
class StudentT:
    r"""Student's t likelihood with a learned scale s: $\frac{\nu+1}2\log(1+r^2/\nu s^2)+\log s$.

    Arguments:
        freedom: the degrees of freedom.
        floor: s cannot fall below it, however well some readings are fitted.
        unit: multiplies the likelihood, to weigh it against a loss's other terms.
    """

    freedom: float = 3.0
    floor: float = 0.0
    unit: float = 1.0
    name: str = "student"

    def __post_init__(self):
        _positive(self.name, "freedom", self.freedom)
        _positive(self.name, "unit", self.unit)

    def __call__(self, misfit: jax.Array, weight: jax.Array, model: Model) -> jax.Array:
        """The penalty."""
        log_scale = floored(model.extras["log_scale"], self.floor)
        ratio = misfit**2 / (self.freedom * jnp.exp(2 * log_scale))
        negative = 0.5 * (self.freedom + 1) * jnp.log1p(ratio) + log_scale
        return self.unit * jnp.sum(weight * negative)


@dataclass(frozen=True)
class Mixture:
    r"""Two-Gaussian likelihood with learned levels and share, $-\log\sum_k\pi_k N(r;0,s_k^2I)$.

    A reading of several quantities is good or bad as a whole. The second level is above the first
    by construction, so the components cannot swap.

    Arguments:
        floor: the levels cannot fall below it, however well some readings are fitted.
        unit: multiplies the likelihood, to weigh it against a loss's other terms.
    """

    floor: float = 0.0
    unit: float = 1.0
    name: str = "mixture"

    def __post_init__(self):
        _positive(self.name, "unit", self.unit)

    def __call__(self, misfit: jax.Array, weight: jax.Array, model: Model) -> jax.Array:
        """The penalty."""
        present = weight > 0
        logs = mixture_log_densities(misfit, present, model.extras, self.floor)
        each = jnp.sum(weight, axis=1) / jnp.maximum(jnp.sum(present, axis=1), 1)
        return -self.unit * jnp.sum(each * jax.nn.logsumexp(jnp.stack(logs), axis=0))


@dataclass(frozen=True)
class Heteroscedastic:
    r"""A Gaussian whose log level is an output of the network: $\frac12 r^2e^{-2\ell}+\ell$.

    Arguments:
        offset: added to the network's output, so that a fresh network starts from that level.
        floor: the level cannot fall below it, however well some readings are fitted.
        unit: multiplies the likelihood, to weigh it against a loss's other terms.
    """

    offset: float = 0.0
    floor: float = 0.0
    unit: float = 1.0
    name: str = "heteroscedastic"

    def __post_init__(self):
        _positive(self.name, "unit", self.unit)

    def __call__(
        self, misfit: jax.Array, weight: jax.Array, model: Model, log_level: jax.Array
    ) -> jax.Array:
        """The penalty."""
        log_level = floored(log_level + self.offset, self.floor)
        negative = 0.5 * misfit**2 * jnp.exp(-2 * log_level) + log_level
        return self.unit * jnp.sum(weight * negative)


@dataclass(frozen=True)
class Trimmed:
    r"""Least trimmed squares: the mean of the smallest share of squares."""

    share: float = 0.5
    name: str = "trimmed"

    def __post_init__(self):
        if not 0 < self.share <= 1:
            raise UserError(f"trimmed squares need a share in (0, 1], not {self.share}")

    def __call__(self, misfit: jax.Array, weight: jax.Array, model: Model) -> jax.Array:
        """The penalty."""
        square = misfit**2
        kept = weight * trimmed_rows(square, weight > 0, self.share)
        return jnp.sum(kept * square) / jnp.sum(kept)


def trimmed_rows(square: jax.Array, present: jax.Array, share: float) -> jax.Array:
    """Which entries are among the smallest share of those that are present."""
    known = jax.lax.stop_gradient(jnp.where(present, square, jnp.inf))
    last = jnp.ceil(share * jnp.sum(present)).astype(jnp.int32) - 1
    return present & (known <= jnp.sort(known.ravel())[jnp.maximum(last, 0)])


def mixture_log_densities(
    misfit: jax.Array, present: jax.Array, extras: dict[str, jax.Array], floor: float = 0.0
) -> list[jax.Array]:
    """The log of each component's share times a reading's density, (n,) each, low level first."""
    low = extras["log_low"]
    high = low + jax.nn.softplus(extras["gap"])
    shares = jax.nn.log_sigmoid(-extras["logit_high"]), jax.nn.log_sigmoid(extras["logit_high"])
    logs = []
    for share, log_level in zip(shares, (low, high), strict=True):
        level = floored(log_level, floor)
        each = -0.5 * misfit**2 * jnp.exp(-2 * level) - level - 0.5 * _LOG_TWO_PI
        logs.append(share + jnp.sum(jnp.where(present, each, 0.0), axis=1))
    return logs


def floored(log_level: jax.Array, floor: float) -> jax.Array:
    r"""The log of $\sqrt{s^2 + f^2}$: smooth, and never below the floor f."""
    if floor == 0.0:
        return log_level
    return 0.5 * jnp.logaddexp(2 * log_level, 2 * jnp.log(floor))


def _positive(name: str, option: str, value: float) -> None:
    if not value > 0:
        raise UserError(f"{name} needs a {option} above zero, not {value}")


Penalty = Squared | Absolute | Huber | StudentT | Mixture | Heteroscedastic | Trimmed
