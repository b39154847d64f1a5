"""Which readings not to trust, one row a reading, and what that says about each sensor."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn._files import write_bytes
from unpinn.problem import Observations
from unpinn.training import Fit, Partition
from unpinn.unlearning import scores_of

# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def suspects_table(fit: Fit, only_suspects: bool = False) -> Any:
    """One row a reading, the worst first, as a pandas DataFrame.

    Columns: `reading` (its row among the observations), `sensor` where there are any, the
    coordinates; for each quantity its value and its prediction (`u`, `u_predicted`); the misfit's
    norm, signed where there is one quantity, the residual's norm, the composite score, the
    posterior of being bad, the weight in fine-tuning, and whether it was `retained`.

    Score, residual, posterior and weight are those by which the partition was made; predictions
    and misfits are the final model's. A fit without a partition has scores, and retains all.

    Arguments:
        fit: a fit with readings.
        only_suspects: leave out the retained ones.
    """
    import pandas as pd

    observations = _readings(fit)
    predicted = fit.predicted_readings()
    misfits = predicted - observations.values
    found = partition_of(fit)
    columns: dict[str, Any] = {"reading": np.arange(len(observations))}
    if observations.sensor is not None:
        columns["sensor"] = observations.sensor.astype(str)
    columns |= dict(zip(fit.problem.coordinates, observations.points.T, strict=True))
    for number, name in enumerate(observations.quantities):
        columns[name] = observations.values[:, number]
        columns[f"{name}_predicted"] = predicted[:, number]
    signed = misfits.shape[1] == 1
    columns["misfit"] = misfits[:, 0] if signed else np.sqrt(np.nansum(misfits**2, axis=1))
    columns |= {"residual": found.residual, "score": found.score}
    columns["posterior"] = _posterior(found)
    columns |= {"weight": found.weight, "retained": found.retained}
    table = pd.DataFrame(columns)
    order = np.lexsort((np.arange(len(table)), -found.score, found.retained))
    table = table.iloc[order].reset_index(drop=True)
    return table[~table["retained"]].reset_index(drop=True) if only_suspects else table


def sensors_table(fit: Fit) -> Any:
    """One row a sensor, the worst first: how many of its readings are suspect, and its misfits.

    `bias` is the median of prediction minus reading for each quantity, `typical_misfit` the median
    of its absolute value; both are in the quantity's unit.
    """
    import pandas as pd

    observations = _readings(fit)
    if observations.sensor is None:
        raise UserError("these readings name no sensors, so there is nothing to sum up by sensor")
    found = partition_of(fit)
    misfits = fit.misfits()
    names, codes = np.unique(observations.sensor.astype(str), return_inverse=True)
    rows = []
    for number, name in enumerate(names):
        mine = codes == number
        row: dict[str, Any] = {
            "sensor": name,
            "readings": int(mine.sum()),
            "suspect": int(found.suspect[mine].sum()),
        }
        row["share"] = row["suspect"] / row["readings"]
        for column, quantity in enumerate(observations.quantities):
            seen = misfits[mine, column]
            seen = seen[np.isfinite(seen)]
            middle = float(np.median(seen)) if len(seen) else float("nan")
            size = float(np.median(np.abs(seen))) if len(seen) else float("nan")
            only = len(observations.quantities) == 1
            row["bias" if only else f"bias_{quantity}"] = middle
            row["typical_misfit" if only else f"typical_misfit_{quantity}"] = size
        rows.append(row)
    table = pd.DataFrame(rows)
    order = np.lexsort((-table["suspect"], -table["share"]))
    return table.iloc[order].reset_index(drop=True)


def sensor_sentences(fit: Fit, least: float = 0.2) -> tuple[str, ...]:
    """What to tell of sensors of which more than a share is suspect, as sentences."""
    if fit.observations is None or fit.observations.sensor is None or fit.partition is None:
        return ()
    table = sensors_table(fit)
    bad = table[(table["share"] > least) & (table["readings"] > 1)]
    return tuple(
        f"{row.sensor or 'the unnamed sensor'}: {row.share:.0%} of its {row.readings:,} readings "
        "are suspect"
        for row in bad.itertuples()
    )


def write_suspects(fit: Fit, path: Any, only_suspects: bool = False) -> Path:
    """Write `suspects_table` as CSV; text that a spreadsheet would run as a formula is disarmed."""
    return _write(suspects_table(fit, only_suspects), path)


def write_sensors(fit: Fit, path: Any) -> Path:
    """Write `sensors_table` as CSV, disarmed in the same way."""
    return _write(sensors_table(fit), path)


def partition_of(fit: Fit) -> Partition:
    """The fit's partition; one that retains everything where it has none."""
    if fit.partition is not None:
        return fit.partition
    scores = scores_of(fit)
    everything = np.ones(len(scores.score), bool)
    return Partition(
        scores.misfit, scores.residual, scores.score, everything, everything.astype(np.float64),
        float("inf"), "no partition was made",
    )  # fmt: skip


def _posterior(found: Partition) -> np.ndarray:
    if found.posterior is None:
        return np.full(len(found.score), np.nan)
    return found.posterior


def _readings(fit: Fit) -> Observations:
    if fit.observations is None:
        raise UserError("this fit has no readings, so there is nothing to suspect")
    return fit.observations


def _write(table: Any, path: Any) -> Path:
    path = Path(path)
    safe = table.rename(columns=_disarmed)
    for name in safe.columns:
        if safe[name].dtype.kind not in "fiub":
            safe[name] = [_disarmed(text) for text in safe[name]]
    out = io.StringIO()
    safe.to_csv(out, index=False, lineterminator="\n", float_format="%.9g")
    write_bytes(path, out.getvalue().encode())
    return path


def _disarmed(text: Any) -> str:
    """Text with an apostrophe before it where a spreadsheet would take it for a formula."""
    text = str(text)
    return f"'{text}" if text.startswith(_FORMULA) else text
