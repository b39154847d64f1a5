"""Plain records that travel inside a fit: its status, its partition, its pruning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Status:
    """Why a fit stopped: a code for programs and a sentence for people.

    Arguments:
        code: "finished", "diverged" (the last good state was kept), "kept" (an unlearning that did
            not help, so the baseline was kept) or "failed".
        reason: the sentence.
    """

    code: str
    reason: str

    @property
    def good(self) -> bool:
        """Whether the result can be used without a warning."""
        return self.code in ("finished", "kept")


@dataclass(frozen=True)
class NoiseEstimate:
    """What the misfits say about the readings' errors.

    Arguments:
        low: standard deviation of good readings.
        high: standard deviation of bad ones (equal to low where there is one kind).
        share: how many are bad.
        components: 1 or 2 kinds of readings.
        evidence: by how much two kinds beat one in the Bayesian information criterion.
        factors: how large the errors of each measured quantity are beside those of the first, to
            which `low` and `high` belong; empty where all are alike.
    """

    low: float
    high: float
    share: float
    components: int
    evidence: float
    factors: tuple[float, ...] = ()

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> NoiseEstimate:
        """Read back what `vars` gave, from JSON's types."""
        return cls(**{**told, "factors": tuple(told.get("factors", ()))})


@dataclass(frozen=True, eq=False)
class Partition:
    """Which readings are retained and which are suspect, with the reasons.

    Arguments:
        misfit: norm of prediction minus reading, (N,).
        residual: norm of the equations' residual at the reading's point, (N,).
        score: the composite score, (N,).
        retained: kept for fine-tuning, (N,) of bool.
        weight: how much each counts in fine-tuning, (N,); a hard cut has ones and zeros.
        posterior: probability of being a bad reading, (N,), where a mixture was fitted.
        threshold: the score from which on a reading is suspect.
        rule: how the threshold was chosen.
        noise: the estimated noise, where a mixture was fitted.
    """

    misfit: np.ndarray
    residual: np.ndarray
    score: np.ndarray
    retained: np.ndarray
    weight: np.ndarray
    threshold: float
    rule: str
    posterior: np.ndarray | None = None
    noise: NoiseEstimate | None = None

    @property
    def suspect(self) -> np.ndarray:
        """The readings that are not retained."""
        return ~self.retained

    @property
    def share_retained(self) -> float:
        """How many are retained."""
        return float(np.mean(self.retained))

    def _repr_html_(self) -> str:
        from unpinn.report import partition_html

        return partition_html(self)


@dataclass(frozen=True, eq=False)
class PruningStep:
    """One iteration: every neuron's importance, and which were removed.

    Arguments:
        layers: the prunable layers that took part.
        scores: for each of them the importance of all neurons (NaN where removed before).
        removed: for each of them the neurons removed now.
    """

    layers: tuple[int, ...]
    scores: tuple[np.ndarray, ...]
    removed: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Pruning:
    """The history of a pruning.

    Arguments:
        criterion: the importance's name.
        steps: every iteration.
        before: neurons in each layer before.
        after: and after.
        folded: whether removed neurons' means were folded into the next layer.
        constant: how many constant neurons were folded away exactly, in each layer.
        note: what the guard said, if it said anything.
    """

    criterion: str
    steps: tuple[PruningStep, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    folded: bool
    constant: tuple[int, ...] = ()
    note: str = ""

    @property
    def neurons_left(self) -> int:
        """Neurons that remain in all layers."""
        return sum(self.after)


def partition_arrays(partition: Partition) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A partition as arrays and a description."""
    names = ("misfit", "residual", "score", "retained", "weight", "posterior")
    arrays = {n: getattr(partition, n) for n in names if getattr(partition, n) is not None}
    noise = None if partition.noise is None else vars(partition.noise)
    return arrays, {"threshold": partition.threshold, "rule": partition.rule, "noise": noise}


def partition_from(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> Partition:
    """Read back what `partition_arrays` gave."""
    noise = about["noise"]
    threshold = about["threshold"]
    return Partition(
        arrays["misfit"], arrays["residual"], arrays["score"],
        arrays["retained"].astype(bool), arrays["weight"],
        float("inf") if threshold is None else float(threshold), str(about["rule"]),
        arrays.get("posterior"), None if noise is None else NoiseEstimate.of(noise),
    )  # fmt: skip


def pruning_arrays(pruning: Pruning) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A pruning as arrays and a description."""
    arrays: dict[str, np.ndarray] = {}
    for number, step in enumerate(pruning.steps):
        for layer, scores, removed in zip(step.layers, step.scores, step.removed, strict=True):
            arrays[f"{number}.{layer}.scores"] = scores
            arrays[f"{number}.{layer}.removed"] = removed
    about = {
        "criterion": pruning.criterion,
        "layers": [list(step.layers) for step in pruning.steps],
        "before": pruning.before,
        "after": pruning.after,
        "folded": pruning.folded,
        "constant": pruning.constant,
        "note": pruning.note,
    }
    return arrays, about


def pruning_from(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> Pruning:
    """Read back what `pruning_arrays` gave."""
    steps = []
    for number, layers in enumerate(about["layers"]):
        scores = tuple(arrays[f"{number}.{layer}.scores"] for layer in layers)
        removed = tuple(arrays[f"{number}.{layer}.removed"] for layer in layers)
        steps.append(PruningStep(tuple(layers), scores, removed))
    return Pruning(
        about["criterion"], tuple(steps), tuple(about["before"]), tuple(about["after"]),
        bool(about["folded"]), tuple(about["constant"]), str(about["note"]),
    )  # fmt: skip


@dataclass(frozen=True)
class Versions:
    """What computed a fit."""

    unpinn: str
    jax: str
    python: str
    machine: str
    threads: int = field(default=0)

    @classmethod
    def here(cls) -> Versions:
        """This machine, now."""
        import os
        import platform

        import jax

        from unpinn._version import __version__

        return cls(
            __version__, jax.__version__, platform.python_version(),
            f"{platform.system()} {platform.machine()} {jax.default_backend()}",
            os.cpu_count() or 0,
        )  # fmt: skip
