"""What a run leaves behind besides its fit: history, suspects, pictures."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._files import write_bytes, write_text
from unpinn.training import Fit


def write_history(path: Path, fits: list[Fit]) -> None:
    """Every term at every epoch, one row an epoch: the method, the stage, and the terms."""
    import pandas

    frames = []
    for fit in fits:
        history = fit.history
        frame = pandas.DataFrame(history.rows, columns=list(history.names))
        starts = [start for _, start in history.stages]
        stage = np.searchsorted(starts, np.arange(len(history)), side="right")
        kinds = np.array(["", *(kind for kind, _ in history.stages)])
        frame.insert(0, "method", fit.method)
        frame.insert(1, "stage", stage)
        frame.insert(2, "kind", kinds[stage])
        frame.insert(3, "epoch", np.arange(len(history)) - np.array([0, *starts])[stage] + 1)
        frames.append(frame)
    buffer = io.BytesIO()
    pandas.concat(frames, ignore_index=True).to_parquet(buffer, index=False)
    write_bytes(path, buffer.getvalue())


def suspect_rows(fit: Fit) -> tuple[list[str], list[list[Any]]]:
    """A table of all readings, the most suspect first: its columns and its rows."""
    observations, partition = fit.observations, fit.partition
    assert observations is not None and partition is not None
    predicted = fit.predicted_readings()
    columns: dict[str, Any] = {"reading": np.arange(len(observations))}
    if observations.sensor is not None:
        columns["sensor"] = observations.sensor
    columns |= {n: observations.points[:, k] for k, n in enumerate(fit.problem.coordinates)}
    for number, name in enumerate(observations.quantities):
        columns[f"{name} read"] = observations.values[:, number]
        columns[f"{name} predicted"] = predicted[:, number]
    columns |= {
        "misfit": np.sqrt(np.nansum((predicted - observations.values) ** 2, axis=1)),
        "misfit before": partition.misfit,
        "residual before": partition.residual,
    }
    if partition.posterior is not None:
        columns["probability bad"] = partition.posterior
    columns["weight"] = partition.weight
    columns["suspect"] = np.where(partition.suspect, "yes", "no")
    doubt = partition.score if partition.posterior is None else partition.misfit
    order = np.lexsort((-doubt, ~partition.suspect))
    rows = [[_cell(values[k]) for values in columns.values()] for k in order]
    return list(columns), rows


def write_suspects(path: Path, fit: Fit) -> None:
    """`suspect_rows` as CSV."""
    names, rows = suspect_rows(fit)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def _cell(value: Any) -> Any:
    """A number to nine digits; a sensor's name so that no spreadsheet takes it for a formula."""
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.9g}"
    text = str(value)
    numeric = isinstance(value, (int, np.integer))
    return f"'{text}" if not numeric and text[:1] in "=+-@\t\r" and text else text
