"""What unlearning another framework's model gives: plain arrays, and the framework's own module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn._files import write_arrays, write_bytes, write_json
from unpinn.training import Partition, Pruning, Status
from unpinn.training._records import partition_arrays, pruning_arrays
from unpinn.unlearning import Evidence, Scores

_FILES = ("unlearned.json", "unlearned.safetensors", "suspects.csv", "partition.png")


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
        seconds: what pruning and what fine-tuning took in all attempts.
        tried: the attempts in turn: whether each was accepted, and what it gave.
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
    tried: list[dict[str, Any]] = field(default_factory=list)

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
            "tried": self.tried,
        }

    def suspects_table(
        self,
        only_suspects: bool = False,
        axes: Sequence[str] | None = None,
        quantities: Sequence[str] | None = None,
    ) -> Any:
        """One row a reading, the worst first, as a pandas DataFrame.

        The columns are those of `unpinn.report.suspects_table`: score, residual, posterior and
        weight are those by which the last partition was made, predictions and misfits the final
        model's.

        Arguments:
            only_suspects: leave out the retained ones.
            axes: names of the coordinates; x1, x2, ... unless told.
            quantities: names of what was read; value1, value2, ... unless told.
        """
        import pandas as pd

        found, misfits = self.partition, self.after.misfits
        axes = _names(axes, "x", self.points.shape[1], "coordinates")
        quantities = _names(quantities, "value", self.values.shape[1], "quantities")
        columns: dict[str, Any] = {"reading": np.arange(len(self.points))}
        columns |= dict(zip(axes, self.points.T, strict=True))
        for number, name in enumerate(quantities):
            columns[name] = self.values[:, number]
            columns[f"{name}_predicted"] = (self.values + misfits)[:, number]
        one = misfits.shape[1] == 1
        columns["misfit"] = misfits[:, 0] if one else np.sqrt(np.nansum(misfits**2, axis=1))
        columns |= {"residual": found.residual, "score": found.score}
        columns["posterior"] = np.nan if found.posterior is None else found.posterior
        columns |= {"weight": found.weight, "retained": found.retained}
        table = pd.DataFrame(columns)
        order = np.lexsort((np.arange(len(table)), -found.score, found.retained))
        table = table.iloc[order].reset_index(drop=True)
        return table[~table["retained"]].reset_index(drop=True) if only_suspects else table

    def report(
        self,
        directory: Any,
        axes: Sequence[str] | None = None,
        quantities: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write record, arrays, the table of suspects and (in two dimensions or more) their map.

        Arguments:
            directory: where to; it is made if need be.
            axes: names of the coordinates.
            quantities: names of what was read.
            overwrite: whether an earlier report there may be replaced.
        """
        from unpinn.report._suspects import _write

        path = Path(directory)
        table = self.suspects_table(axes=axes, quantities=quantities)
        axes = _names(axes, "x", self.points.shape[1], "coordinates")
        there = [path / name for name in _FILES if (path / name).exists()]
        if there and not overwrite:
            raise UserError(f"{there[0]} exists; choose another directory, or pass overwrite=True")
        write_arrays(path / "unlearned.safetensors", self.arrays())
        _write(table, path / "suspects.csv")
        if len(axes) >= 2:
            write_bytes(path / "partition.png", self._map(axes))
        write_json(path / "unlearned.json", self.describe())

    def _evidence(self) -> dict[str, Any] | None:
        if self.evidence is None:
            return None
        return {**vars(self.evidence), "accepts": self.evidence.accepts}

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


def _names(given: Sequence[str] | None, stem: str, count: int, what: str) -> tuple[str, ...]:
    """One name each, numbered unless told."""
    if given is None:
        return (stem,) if count == 1 else tuple(f"{stem}{k + 1}" for k in range(count))
    if len(given) != count:
        raise UserError(f"{len(given)} names were given for {count} {what}")
    return tuple(given)
