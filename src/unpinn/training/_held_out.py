"""Readings kept out of training: the honest measure where no exact solution exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from unpinn._errors import UserError
from unpinn.problem import Observations, Problem
from unpinn.training._fit import Fit
from unpinn.training._protocol import Protocol
from unpinn.training._train import train

By = Literal["reading", "sensor"]


def hold_out(
    observations: Observations, share: float = 0.1, by: By = "reading", seed: int = 0
) -> np.ndarray:
    """Row numbers of readings to keep out of training, in order.

    By sensor, whole sensors are kept out until the share is reached: readings of one sensor tend to
    err alike, so that a sensor's other readings would give its errors away.

    Arguments:
        observations: the readings.
        share: how many of them, strictly between 0 and 1; at least one is held out, and one kept.
        by: "reading" or "sensor".
        seed: of the choice.
    """
    if not 0 < share < 1:
        raise UserError(f"the share to hold out must lie between 0 and 1, not {share}")
    wanted = min(max(1, round(share * len(observations))), len(observations) - 1)
    if wanted < 1:
        raise UserError("one reading alone cannot be split; hold none out")
    random = np.random.default_rng(seed)
    if _checked(by) == "reading":
        return np.sort(random.permutation(len(observations))[:wanted])
    codes, count = _sensors(observations, 2)
    taken = np.zeros(len(observations), bool)
    for sensor in random.permutation(count)[: count - 1]:
        if taken.sum() >= wanted:
            break
        taken |= codes == sensor
    return np.flatnonzero(taken)


def split_folds(
    observations: Observations, folds: int = 5, by: By = "sensor", seed: int = 0
) -> tuple[np.ndarray, ...]:
    """Row numbers in folds of about equal size: every reading is in one; sensors are not cut."""
    if folds < 2:
        raise UserError(f"cross-validation needs two folds or more, not {folds}")
    random = np.random.default_rng(seed)
    if _checked(by) == "reading":
        if folds > len(observations):
            raise UserError(f"{len(observations)} readings cannot make {folds} folds")
        parts = np.array_split(random.permutation(len(observations)), folds)
        return tuple(np.sort(part) for part in parts)
    codes, count = _sensors(observations, folds)
    sizes = np.bincount(codes, minlength=count)
    filled = np.zeros(folds)
    home = np.empty(count, int)
    # The largest first, each to the emptiest fold; sensors of one size come in random order.
    for sensor in sorted(random.permutation(count), key=lambda s: -sizes[s]):
        home[sensor] = int(np.argmin(filled))
        filled[home[sensor]] += sizes[sensor]
    return tuple(np.flatnonzero(home[codes] == fold) for fold in range(folds))


def train_without(
    problem: Problem,
    observations: Observations,
    rows: Any,
    protocol: Protocol | None = None,
    seed: int = 0,
    **options: Any,
) -> Fit:
    """Train with some readings held out; the fit remembers them, and unlearning judges by them.

    Arguments:
        problem: equations and conditions.
        observations: all readings, those to hold out included.
        rows: which to hold out, as `hold_out` gives them.
        protocol: how to train.
        seed: of everything random.
        options: further ones of `train`; weights are multiplied.
    """
    rows = np.unique(np.asarray(rows))
    if not len(rows) or rows[0] < 0 or rows[-1] >= len(observations):
        raise UserError(f"rows to hold out must be between 0 and {len(observations) - 1}")
    if len(rows) == len(observations):
        raise UserError("all readings would be held out, and none left to train on")
    given = options.pop("weights", None)
    weights = np.ones(len(observations)) if given is None else np.array(given, np.float64)
    weights[rows] = 0.0
    fit = train(problem, observations, protocol, seed, weights=weights, **options)
    return fit.with_details(held_out=rows.tolist())


@dataclass(frozen=True, eq=False)
class Fold:
    """What one fold's held-out readings say.

    Arguments:
        rows: the held-out readings.
        sensors: their sensors, where known.
        root_mean_square: of prediction minus held-out reading, by quantity, in its unit.
        typical: the median of its absolute value, which gross errors hardly move.
        relative: `typical` over the same of the readings about their own median: 1 is no better
            than predicting one number everywhere.
        unknowns: what was found without these readings.
        status: the fit's code.
    """

    rows: np.ndarray
    sensors: tuple[str, ...]
    root_mean_square: Mapping[str, float]
    typical: Mapping[str, float]
    relative: Mapping[str, float]
    unknowns: Mapping[str, float]
    status: str


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """All folds, and every reading's prediction by a model that never saw it.

    Arguments:
        folds: one a fold.
        predicted: (N, quantities), each row from the fold in which it was held out.
        misfits: prediction minus reading, NaN where a reading lacks the quantity.
        quantities: what the columns are.
    """

    folds: tuple[Fold, ...]
    predicted: np.ndarray
    misfits: np.ndarray
    quantities: tuple[str, ...]

    @property
    def typical(self) -> dict[str, float]:
        """The median absolute misfit of held-out readings, by quantity."""
        return {q: _median(np.abs(c)) for q, c in zip(self.quantities, self.misfits.T, strict=True)}

    @property
    def unknowns(self) -> dict[str, tuple[float, float]]:
        """Each unknown's mean over the folds, and how much it varies between them."""
        names = self.folds[0].unknowns
        values = {name: np.array([fold.unknowns[name] for fold in self.folds]) for name in names}
        return {name: (float(v.mean()), float(v.std(ddof=1))) for name, v in values.items()}

    def table(self) -> Any:
        """One row a fold, as a pandas DataFrame."""
        import pandas as pd

        rows = []
        for number, fold in enumerate(self.folds, start=1):
            row: dict[str, Any] = {
                "fold": number, "readings": len(fold.rows), "sensors": ", ".join(fold.sensors),
            }  # fmt: skip
            for name in self.quantities:
                row[f"{name}_rms"] = fold.root_mean_square[name]
                row[f"{name}_typical"] = fold.typical[name]
                row[f"{name}_relative"] = fold.relative[name]
            rows.append({**row, **fold.unknowns, "status": fold.status})
        return pd.DataFrame(rows)


def cross_validate(
    problem: Problem,
    observations: Observations,
    protocol: Protocol | None = None,
    folds: int = 5,
    by: By = "sensor",
    seed: int = 0,
    finish: Callable[[Fit], Fit] | None = None,
    **options: Any,
) -> CrossValidation:
    """Train once a fold without its readings, and judge each model by those it never saw.

    Arguments:
        problem: equations and conditions.
        observations: the readings.
        protocol: how to train.
        folds: how many.
        by: "sensor" keeps each sensor's readings together, "reading" does not.
        seed: of the folds and of training.
        finish: what is done with each trained fit before it is judged, `unpinn.unlearn` say.
        options: further ones of `train`.
    """
    parts = split_folds(observations, folds, by, seed)
    predicted = np.full(observations.values.shape, np.nan)
    found = []
    for rows in parts:
        fit = train_without(problem, observations, rows, protocol, seed, **options)
        fit = fit if finish is None else finish(fit)
        judged = observations.take(rows)
        predicted[rows] = fit.predicted_readings(judged)
        found.append(_fold(fit, judged, rows, predicted[rows] - judged.values, observations))
    misfits = predicted - observations.values
    return CrossValidation(tuple(found), predicted, misfits, observations.quantities)


def _fold(fit: Fit, judged: Observations, rows, misfits, observations: Observations) -> Fold:
    names = () if judged.sensor is None else tuple(np.unique(judged.sensor.astype(str)).tolist())
    rms, typical, relative = {}, {}, {}
    for column, name in enumerate(observations.quantities):
        own = misfits[:, column]
        own = own[np.isfinite(own)]
        rms[name] = float(np.sqrt(np.mean(own**2))) if len(own) else float("nan")
        typical[name] = _median(np.abs(own))
        seen = observations.values[:, column]
        spread = _median(np.abs(seen - _median(seen)))
        relative[name] = typical[name] / spread if spread > 0 else float("nan")
    return Fold(rows, names, rms, typical, relative, dict(fit.unknowns), fit.status.code)


def _median(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else float("nan")


def _checked(by: str) -> str:
    if by not in get_args(By):
        raise UserError(f"by={by!r} is not one of {', '.join(map(repr, get_args(By)))}")
    return by


def _sensors(observations: Observations, least: int) -> tuple[np.ndarray, int]:
    if observations.sensor is None:
        raise UserError("these readings name no sensors; split them by='reading'")
    names, codes = np.unique(observations.sensor.astype(str), return_inverse=True)
    if len(names) < least:
        raise UserError(f"{len(names)} sensors cannot be split into {least} parts")
    return codes, len(names)
