"""Small networks of every architecture, and derivatives by nested forward differentiation."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import numpy as np
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


@pytest.fixture(scope="session")
def nested() -> Callable:
    """Every derivative up to an order by nested jvp: a mapping from orders to (n, columns)."""

    def nested(function, points, order):
        dimension = points.shape[1]
        towers = [lambda point: function(point[None])[0]]
        for _ in range(order):
            towers.append(jax.jacfwd(towers[-1]))
        tensors = jax.jit(lambda points: [jax.vmap(tower)(points) for tower in towers])(points)
        found = {}
        for total, tensor in enumerate(map(np.asarray, tensors)):
            for orders in itertools.product(range(total + 1), repeat=dimension):
                if sum(orders) == total:
                    axes = [axis for axis, count in enumerate(orders) for _ in range(count)]
                    found[orders] = tensor[(slice(None), slice(None), *axes)]
        return found

    return nested
