"""A network of plain NumPy arrays that can be pruned, and a tiny fit with bad readings in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from unpinn.network import Architecture
from unpinn.problem import Condition, Observations, Problem, Scalar, Sobol, observe
from unpinn.training import Adam, Fit, Lbfgs, Partition, Protocol, Quiet, train
from unpinn.unlearning import ByMixture, ByShare, Recipe, Schedule, unlearn

RATE = 0.7


@dataclass(frozen=True, eq=False)
class PlainNetwork:
    """A tanh network that knows nothing of any framework: all that pruning may ask, and no more."""

    weights: list[np.ndarray]
    biases: list[np.ndarray]
    points: np.ndarray
    masks: list[np.ndarray]

    @classmethod
    def draw(cls, points: np.ndarray, widths=(100, 100), seed: int = 0, spread: float = 1.0):
        random = np.random.default_rng(seed)
        sizes = [points.shape[1], *widths, 1]
        shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
        return cls(
            [spread * random.standard_normal(shape) / np.sqrt(shape[1]) for shape in shapes],
            [0.5 * random.standard_normal(shape[0]) for shape in shapes],
            points,
            [np.ones(width, bool) for width in widths],
        )

    def activations(self) -> list[np.ndarray]:
        seen, value = [], self.points
        for weight, bias, mask in zip(self.weights, self.biases, self.masks, strict=False):
            value = np.tanh(value @ weight.T + bias) * mask
            seen.append(value)
        return seen

    def alive(self) -> list[np.ndarray]:
        return [mask.copy() for mask in self.masks]

    def norms(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        incoming = np.linalg.norm(self.weights[layer], axis=1)
        return incoming, np.linalg.norm(self.weights[layer + 1], axis=0)

    def remove(self, layer: int, neurons: np.ndarray, constants: np.ndarray) -> PlainNetwork:
        biases, masks = list(self.biases), [mask.copy() for mask in self.masks]
        biases[layer + 1] = biases[layer + 1] + self.weights[layer + 1] @ constants
        masks[layer][neurons] = False
        return replace(self, biases=biases, masks=masks)

    def predict(self) -> np.ndarray:
        return self.activations()[-1] @ self.weights[-1].T + self.biases[-1]

    def with_row(self, layer: int, neuron: int, weights: float | np.ndarray, bias: float):
        """A copy in which one neuron is fed otherwise."""
        changed, biases = [w.copy() for w in self.weights], [b.copy() for b in self.biases]
        changed[layer][neuron], biases[layer][neuron] = weights, bias
        return replace(self, weights=changed, biases=biases)


@pytest.fixture(scope="session")
def line() -> np.ndarray:
    return np.linspace(-1, 1, 60)[:, None]


@pytest.fixture(scope="session")
def draw(line):
    """Draw a plain network on the points of `line`."""

    def draw(**options) -> PlainNetwork:
        return PlainNetwork.draw(line, **options)

    return draw


@pytest.fixture(scope="session")
def halves():
    """A partition by which readings are retained, all else of no consequence."""

    def halves(retained, **changes) -> Partition:
        retained = np.asarray(retained, bool)
        nothing = np.zeros(len(retained))
        return Partition(
            nothing, nothing, nothing, retained, retained.astype(float), 0.0, "told", **changes
        )

    return halves


@pytest.fixture(scope="session")
def parted(line, halves) -> Partition:
    """Readings to the right are suspect."""
    return halves(line[:, 0] < 0.2)


def decay(u, k):
    return u.x + k * u


def start(u):
    return u - 1.0


def readings(problem: Problem, noise: np.ndarray, seed: int = 0) -> Observations:
    x = np.linspace(0, 2, len(noise))[:, None]
    errors = noise * np.random.default_rng(seed).standard_normal(len(noise))
    return observe(problem, x, np.exp(-RATE * x[:, 0]) + errors)


@dataclass
class World:
    """A decay whose rate is sought, baselines on good and on partly bad readings, and recipes.

    What was unlearned once is kept, so that tests of its record need not do it again.
    """

    problem: Problem
    noise: np.ndarray
    noisy: Fit
    clean: Fit
    short: Recipe
    automatic: Recipe
    kept: dict[str, Fit] = field(default_factory=dict)

    def unlearn(self, fit: Fit, recipe: Recipe, **options: Any) -> Fit:
        return unlearn(fit, recipe, watcher=Quiet(), **options)

    def result(self, name: str) -> Fit:
        if name not in self.kept:
            self.kept[name] = self.unlearn(self.noisy, getattr(self, name))
        return self.kept[name]


@pytest.fixture(scope="session")
def world() -> World:
    problem = Problem(
        coordinates={"x": (0, 2)},
        fields=["u"],
        unknowns=[Scalar("k", initial=0.4)],
        equations={"decay": decay},
        conditions=[Condition("start", start, at={"x": 0})],
        collocation=Sobol(16),
        name="decay",
    )
    noise = np.where(np.random.default_rng(1).random(60) < 0.35, 0.4, 0.02)
    protocol = Protocol(
        (Adam(epochs=400, rate=1e-2, rescale="reference"),),
        architecture=Architecture(width=12, depth=2),
    )
    fits = [
        train(problem, readings(problem, level), protocol, seed=2, watcher=Quiet())
        for level in (noise, np.full(60, 0.02))
    ]
    first, last = (Adam(epochs=60, rate=1e-2),), (Lbfgs(iterations=10),)
    short = Recipe("short", ByShare(0.6), Schedule(steps=6), first)
    automatic = Recipe(
        "automatic", ByMixture(), Schedule(steps=6), first + last, last, tolerance=0.05,
        rounds=3, accept=True,
    )  # fmt: skip
    return World(problem, noise, *fits, short, automatic)
