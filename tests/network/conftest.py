"""Small networks of every architecture."""

from __future__ import annotations

from collections.abc import Callable

import jax
import pytest

from unpinn.network import Architecture

OPTIONS = {"fourier": {"features": 5, "spread": 1.0}}


@pytest.fixture(scope="session")
def draw() -> Callable:
    """Draw a small network of an architecture."""

    def draw(kind, inputs=2, outputs=2, width=7, depth=3, activation="tanh", seed=0):
        architecture = Architecture(kind, width, depth, activation, OPTIONS.get(kind, {}))
        return architecture.make(jax.random.key(seed), inputs, outputs)

    return draw
