"""What the paper's text and its released configuration say about training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from unpinn.training import Adam, Lbfgs, Protocol, paper_assimilation, paper_inversion

Preset = Literal["paper", "released"]
PRESETS: tuple[Preset, ...] = ("paper", "released")


def choose(preset: Preset, paper: Any, released: Any) -> Any:
    """The value of a setting in which the two differ."""
    return paper if preset == "paper" else released


def inversion(preset: Preset, weights: Mapping[str, float] | None = None) -> Protocol:
    """How parameter inversions are trained: 20,000 epochs of Adam."""
    return replace(paper_inversion(), weights=dict(weights or {}), name=preset)


def assimilation(preset: Preset) -> Protocol:
    """How data assimilation is trained: Adam on the data, then L-BFGS on everything.

    The released configuration sets the weights anew between the two, from the gradients' norms.
    """
    return replace(paper_assimilation(balance=preset == "released"), name=preset)


def inversion_fine_tuning(
    preset: Preset, physics_weight: float, weights: Mapping[str, float] | None = None
) -> Protocol:
    """How a pruned inversion is trained on: 2,000 epochs of Adam."""
    return Protocol(
        (Adam(epochs=2_000, rate=1e-3),),
        scaled=False,
        weights={"equations": physics_weight, **(weights or {})},
        name=f"{preset} fine-tuning",
    )


def assimilation_fine_tuning(preset: Preset, physics_weight: float) -> Protocol:
    """How a pruned assimilation is trained on: 2,000 epochs of Adam, then 500 of L-BFGS."""
    return Protocol(
        (Adam(epochs=2_000, rate=1e-3), Lbfgs(iterations=500, history=50, tolerance=1e-8)),
        scaled=False,
        weights={"equations": physics_weight},
        name=f"{preset} fine-tuning",
    )
