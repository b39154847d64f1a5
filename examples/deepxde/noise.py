"""What the four examples share: 60 % bad readings, and one way to run and judge a model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Left alone, DeepXDE would choose a backend and write its choice into the home folder.
os.environ.setdefault("DDE_BACKEND", "pytorch")

import numpy as np

BAD_SHARE = 0.6


@dataclass(frozen=True)
class Case:
    """A model that is ready to be trained, and how to tell how good it is.

    Arguments:
        name: of the problem.
        model: compiled.
        unknowns: its unknown numbers, by name.
        iterations: how long it is trained.
        errors: from the model, relative errors of what is sought, by name.
        is_bad: which readings are truly bad.
    """

    name: str
    model: Any
    unknowns: dict[str, Any]
    iterations: int
    errors: Callable[[], dict[str, float]]
    is_bad: np.ndarray


def spoil(values: np.ndarray, seed: int, good: float, bad: float):
    """Add Gaussian errors, large ones to 60 % of the readings; gives the values and which."""
    random = np.random.default_rng(seed)
    is_bad = random.random(len(values)) < BAD_SHARE
    sigma = np.where(is_bad, bad, good)[:, None]
    return values + sigma * random.standard_normal(values.shape), is_bad


def relative(found: np.ndarray, truth: np.ndarray) -> float:
    """The relative error in the mean square."""
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def coefficient_errors(unknowns: dict[str, Any], truth: dict[str, float]) -> dict[str, float]:
    """The relative error of each unknown number."""
    return {n: abs(float(v.detach()) - truth[n]) / abs(truth[n]) for n, v in unknowns.items()}


def main(build: Callable[[int], Case]) -> None:
    """Train one case, unlearn it, and print both."""
    import argparse

    from measure import run

    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--scale", type=float, default=1.0, help="of the iterations")
    chosen = parser.parse_args()
    for line in run(build, chosen.seed, chosen.scale).lines():
        print(line)
