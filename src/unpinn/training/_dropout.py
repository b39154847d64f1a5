"""Dropout that is cheap beside a small network, and consistent between derivatives.

The masks come from an integer hash of the point's and the neuron's number, which fuses with the
arithmetic around it; drawing as many numbers from JAX's own generator costs more than the network.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from unpinn.network import Hook


@dataclass(frozen=True)
class Noise:
    """Randomness inside the network while training: the dropout rate after each hidden layer."""

    rate: float = 0.0

    def hook(self, key: jax.Array) -> Hook | None:
        """A hook that drops neurons; every derivative channel of a point shares its mask."""
        if self.rate == 0.0:
            return None
        return dropout(key, self.rate)


def dropout(key: jax.Array, rate: float) -> Hook:
    """A hook that silences each neuron of each point with probability `rate`, and scales the rest.

    The mask multiplies every Taylor channel of the point alike, so the derivatives are those of
    the thinned network. Points that are computed in different blocks, or for different terms of a
    loss, meet the same masks where they have the same place; every epoch has new ones.
    """
    seeds = jax.random.bits(key, (2,), jnp.uint32)

    def drop(layer: int, series):
        points, width = series.value.shape
        factor = jnp.where(kept(seeds, layer, width, points, rate), 1 / (1 - rate), 0.0)
        # Behind the barrier the mask is computed once, not again for every channel and backwards.
        mask = jax.lax.optimization_barrier(factor.astype(series.value.dtype))
        return series.scale(mask.T)

    return drop


def kept(seeds: jax.Array, layer: int, width: int, points: int, rate: float) -> jax.Array:
    """Which neurons stay, (width, points): each with probability 1 - rate.

    >>> keep = kept(jnp.array([1, 2], jnp.uint32), 0, 50, 1000, 0.1)
    >>> bool(abs(keep.mean() - 0.9) < 0.005)
    True
    """
    number = lambda count: jnp.arange(count, dtype=jnp.uint32)  # noqa: E731
    neurons = _mix(number(width) * jnp.uint32(0x85EBCA77) + seeds[0] + jnp.uint32(layer << 16))
    places = _mix(number(points) * jnp.uint32(0x9E3779B9) + seeds[1])
    bits = (neurons[:, None] ^ places[None, :]) * jnp.uint32(0x9E3779B1)
    return bits >= jnp.uint32(round(rate * 2**32))


def _mix(word: jax.Array) -> jax.Array:
    """An invertible scrambling of 32 bits (MurmurHash3's finaliser)."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        word = (word ^ (word >> shift)) * jnp.uint32(factor)
    return word ^ (word >> 16)
