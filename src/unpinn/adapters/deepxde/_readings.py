"""Readings, taken from a DeepXDE model's own `PointSetBC` observations, and their weights."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import deepxde as dde
import numpy as np
import torch

from unpinn._errors import UserError


@dataclass(frozen=True, eq=False)
class Observed:
    """One set of observations: the rows and columns of the readings that it makes.

    Arguments:
        bc: the user's `PointSetBC` or `PointSetOperatorBC`.
        rows: its readings' rows.
        columns: its quantities' columns.
    """

    bc: Any
    rows: np.ndarray
    columns: np.ndarray


@dataclass(frozen=True, eq=False)
class Readings:
    """All observations as one table; sets at the same points share their rows.

    Arguments:
        points: (N, dimensions).
        values: (N, quantities), NaN where a row lacks a quantity.
        sets: which part of the table each set is.
    """

    points: np.ndarray
    values: np.ndarray
    sets: tuple[Observed, ...]

    def mean_weight(self, weight: np.ndarray) -> float:
        """What everything that was read counts for on average, from the rows' weights."""
        counts = np.isfinite(self.values).sum(axis=1)
        return float((counts * weight).sum() / counts.sum())

    def misfits(self, inputs: torch.Tensor, outputs: torch.Tensor) -> np.ndarray:
        """Prediction minus reading, by each set's own rule, for the network at `points`."""
        out = np.full(self.values.shape, np.nan)
        for found in self.sets:
            rows = torch.as_tensor(found.rows, device=outputs.device)
            error = _error(found.bc, inputs, outputs, rows)
            out[np.ix_(found.rows, found.columns)] = error.detach().cpu().numpy()
        return out


def find_observations(data: Any, chosen: Sequence[Any] | None = None) -> list[Any]:
    """The sets of observations among a model's conditions.

    Arguments:
        data: the model's data.
        chosen: some of them; all unless told.
    """
    kinds = (dde.icbc.PointSetBC, dde.icbc.PointSetOperatorBC)
    there = [bc for bc in data.bcs if isinstance(bc, kinds)]
    if chosen is not None:
        for bc in chosen:
            if not any(bc is other for other in data.bcs):
                raise UserError("an observation that was passed is not among the model's own ones")
            if not isinstance(bc, kinds):
                raise UserError(
                    f"an observation must be a PointSetBC or PointSetOperatorBC, not "
                    f"{type(bc).__name__}"
                )
        there = list(chosen)
    if not there:
        raise UserError(
            "the model has no readings: none of its conditions is a PointSetBC or a "
            "PointSetOperatorBC"
        )
    return there


def gather(sets: Sequence[Any]) -> Readings:
    """Lay sets of observations into one table."""
    places: dict[bytes, np.ndarray] = {}
    blocks: list[np.ndarray] = []
    quantities: dict[Any, int] = {}
    parts = []
    for number, bc in enumerate(sets):
        points = np.asarray(bc.points)
        key = points.tobytes()
        if key not in places:
            start = sum(map(len, blocks))
            places[key] = np.arange(start, start + len(points))
            blocks.append(points)
        names = _quantities(bc, number)
        columns = np.array([quantities.setdefault(name, len(quantities)) for name in names])
        parts.append(Observed(bc, places[key], columns))
    values = np.full((sum(map(len, blocks)), len(quantities)), np.nan)
    for part in parts:
        block = np.ix_(part.rows, part.columns)
        if np.isfinite(values[block]).any():
            raise UserError("two sets of observations read the same output at the same points")
        read = part.bc.values.detach().cpu().numpy()
        values[block] = np.broadcast_to(read, (len(part.rows), len(part.columns)))
    return Readings(np.concatenate(blocks).astype(np.float64), values, tuple(parts))


def weighted(bc: Any, weight: np.ndarray, mean: float) -> Any:
    r"""A set of observations in which each reading counts as told.

    Errors are multiplied by $\sqrt{w_i/\bar w}$, with the mean over all sets, so that a set of bad
    readings alone loses its say. Where there is one set, the mean of the squares is the weighted
    mean $\sum w_i e_i^2/\sum w$. Everything else about the set stays as it is.

    Arguments:
        bc: the user's set.
        weight: its readings' weights, (N,).
        mean: of the weights of all sets.
    """
    part = copy.copy(bc)
    factors = np.sqrt(weight / mean) if mean > 0 else np.zeros_like(weight)
    factor = torch.as_tensor(factors, dtype=dde.config.real(torch))[:, None]

    def error(X, inputs, outputs, beg, end, aux_var=None):  # noqa: N803
        plain = type(part).error(part, X, inputs, outputs, beg, end, aux_var)
        batch = slice(None) if part.batch_size is None else part.batch_indices
        return plain * factor[batch].to(plain.device)

    part.error = error
    return part


def _quantities(bc: Any, number: int) -> list[Any]:
    """What a set reads: outputs of the network, or an operator of its own."""
    if not hasattr(bc, "component"):
        return [("operator", number)]
    return list(bc.component) if isinstance(bc.component, list) else [int(bc.component)]


def _error(bc: Any, inputs: torch.Tensor, outputs: torch.Tensor, rows: torch.Tensor):
    """A set's errors at all its points, even where training takes them in batches."""
    whole = copy.copy(bc)
    whole.batch_size = None
    if hasattr(bc, "func"):
        # An operator is differentiated with respect to all inputs, so it sees them all.
        every = bc.func(inputs, outputs, inputs.detach().cpu().numpy())
        return every[rows] - bc.values
    picked = outputs[rows]
    return type(whole).error(whole, None, None, picked, 0, len(rows))
