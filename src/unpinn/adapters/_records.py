"""What unlearning another framework's model gives: plain arrays, and the framework's own module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._files import write_arrays, write_bytes, write_json, write_text
from unpinn.training import Partition, Pruning, Status
from unpinn.training._records import partition_arrays, pruning_arrays
from unpinn.unlearning import Evidence, Scores


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a model says at the readings at one moment.

    Arguments:
        misfits: prediction minus reading, (N, quantities), NaN where missing.
        residuals: the equations' residuals at the readings, (N, components).
        fresh_residual: root mean square of the residuals where nothing was enforced.
        unknowns: the unknown numbers.
    """

    misfits: np.ndarray
    residuals: np.ndarray
    fresh_residual: float
    unknowns: dict[str, float]

    def scores(self, residual_weight: float | int) -> Scores:
        """As the partition's rules take them."""
        return Scores(self.misfits, self.residuals, float(residual_weight))


@dataclass(frozen=True, eq=False)
class Unlearned:
    """A cleaned model of another framework, with everything that led to it.

    Arguments:
        module: the cleaned network, in its own framework.
        points: where the readings are, (N, dimensions).
        values: what was read, (N, quantities).
        partition: which readings are retained.
        pruning: which neurons were removed; None where the recipe prunes nothing.
        before: the model as it was given.
        after: the model after unlearning.
        evidence: how the two compare by what a user can see; None where nothing was tried.
        layers: the names of the layers that took part in the pruning.
        compaction: whether removed neurons are physically gone, and if not, why.
        status: whether the cleaned model was taken.
        recipe: the recipe's name.
        seconds: what partition and pruning, and what the fine-tuning took.
    """

    module: Any
    points: np.ndarray
    values: np.ndarray
    partition: Partition
    pruning: Pruning | None
    before: Snapshot
    after: Snapshot
    evidence: Evidence | None
    layers: tuple[str, ...]
    compaction: str
    status: Status
    recipe: str
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def unknowns(self) -> dict[str, float]:
        """The unknown numbers after unlearning."""
        return self.after.unknowns

    @property
    def suspects(self) -> np.ndarray:
        """Row numbers of the suspect readings, worst first."""
        rows = np.flatnonzero(self.partition.suspect)
        return rows[np.argsort(-self.partition.score[rows], kind="stable")]

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array by name: readings, partition, pruning, what the model said when."""
        found = {"points": self.points, "values": self.values}
        for name, shot in (("before", self.before), ("after", self.after)):
            found |= {f"{name}.misfits": shot.misfits, f"{name}.residuals": shot.residuals}
        parts, _ = partition_arrays(self.partition)
        found |= {f"partition.{name}": array for name, array in parts.items()}
        if self.pruning is not None:
            steps, _ = pruning_arrays(self.pruning)
            found |= {f"pruning.{name}": array for name, array in steps.items()}
        return found

    def describe(self) -> dict[str, Any]:
        """Everything that is not an array, in JSON's types."""
        pruning = None if self.pruning is None else pruning_arrays(self.pruning)[1]
        return {
            "recipe": self.recipe,
            "status": vars(self.status),
            "unknowns": {"before": self.before.unknowns, "after": self.after.unknowns},
            "partition": partition_arrays(self.partition)[1],
            "suspects": int(self.partition.suspect.sum()),
            "pruning": pruning,
            "layers": list(self.layers),
            "compaction": self.compaction,
            "evidence": self._evidence(),
            "seconds": self.seconds,
        }

    def report(self, directory: Any, axes: Sequence[str] | None = None) -> None:
        """Write record, arrays, the table of suspects and (in two dimensions or more) their map.

        Arguments:
            directory: where to; it is made if need be.
            axes: names of the coordinates.
        """
        path = Path(directory)
        axes = tuple(axes or (f"x{k + 1}" for k in range(self.points.shape[1])))
        write_arrays(path / "unlearned.safetensors", self.arrays())
        write_text(path / "suspects.csv", self._suspect_table(axes))
        if len(axes) >= 2:
            write_bytes(path / "partition.png", self._map(axes))
        write_json(path / "unlearned.json", self.describe())

    def _evidence(self) -> dict[str, Any] | None:
        if self.evidence is None:
            return None
        return {**vars(self.evidence), "accepts": self.evidence.accepts}

    def _suspect_table(self, axes: Sequence[str]) -> str:
        import pandas as pd

        rows = self.suspects
        table = pd.DataFrame(self.points[rows], columns=list(axes))
        table.insert(0, "reading", rows)
        for number in range(self.values.shape[1]):
            table[f"value {number + 1}"] = self.values[rows, number]
        table["score"] = self.partition.score[rows]
        if self.partition.posterior is not None:
            table["posterior"] = self.partition.posterior[rows]
        return table.to_csv(index=False, lineterminator="\n")

    def _map(self, axes: Sequence[str]) -> bytes:
        from io import BytesIO

        from unpinn.report._pictures import partition_map

        figure = partition_map(
            self.points, self.partition.suspect, axes=axes, score=self.partition.score,
            threshold=self.partition.threshold,
        )  # fmt: skip
        picture = BytesIO()
        figure.savefig(picture, format="png")
        return picture.getvalue()
