"""A problem whose answer is known, with everything needed to pose it and to judge an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from unpinn._errors import UserError
from unpinn.benchmarks._judging import Quantity, evaluate
from unpinn.benchmarks._layout import GridRows, Patch
from unpinn.benchmarks._noise import Noise, instruments
from unpinn.benchmarks._presets import Preset
from unpinn.problem import Grid, Observations, Problem, observe
from unpinn.training import Protocol


@dataclass(frozen=True, eq=False)
class Readings:
    """Simulated readings, and beside them what no method may see.

    Arguments:
        observations: what a method is given.
        sigma_true: the level of each reading's error, (N,).
        is_bad: the true split, (N,).
        clean: the readings without their errors, (N, quantities).
        noise: what was drawn from.
        seed: of the draw.
    """

    observations: Observations
    sigma_true: np.ndarray
    is_bad: np.ndarray
    clean: np.ndarray
    noise: Noise
    seed: int


@dataclass(frozen=True, eq=False)
class Benchmark:
    """An inverse problem with its exact solution.

    Arguments:
        name: what it is called everywhere.
        title: the same in words.
        equation: the equations on one line.
        problem: the statement, as a user would write it.
        exact: the fields and unknown fields as functions of the coordinates, in float64.
        true_scalars: the unknown numbers.
        observed: which fields are read.
        layout: where.
        noise: the readings' errors.
        headline: what the paper judges.
        state: the fields that are reconstructed, judged beside the headline.
        beside: what else is judged.
        test_grid: where; rows on which readings were taken from a `GridRows` are left out.
        protocol: how the baseline is trained.
        fine_tune: how a pruned network is trained on.
        kind: whether coefficients are sought, or the state from readings of a part.
        preset: whose settings these are: the paper's text, or the released configuration.
    """

    name: str
    title: str
    equation: str
    problem: Problem
    exact: Mapping[str, Callable[..., np.ndarray]]
    true_scalars: Mapping[str, float]
    observed: tuple[str, ...]
    layout: tuple[Patch, ...]
    noise: Noise
    headline: Quantity
    state: Quantity
    test_grid: Grid
    protocol: Protocol
    fine_tune: Protocol
    kind: Literal["inversion", "assimilation"]
    preset: Preset
    beside: tuple[Quantity, ...] = ()

    # -- readings --------------------------------------------------------------------------

    def reading_points(self) -> np.ndarray:
        """Where readings are taken, (N, dimensions); the same for every seed."""
        return np.concatenate([patch.draw(self.problem.coordinates) for patch in self.layout])

    def readings(self, seed: int, noise: Noise | None = None) -> Readings:
        """Simulate the readings of a seed, with the problem's own noise or another."""
        noise = self.noise if noise is None else noise
        points = self.reading_points()
        truth = self.truth(points)
        clean = np.stack([truth[name] for name in self.observed], axis=1)
        names = tuple(self.problem.coordinates)
        places = points[:, [names.index(name) for name in self.problem.space]]
        errors = noise.draw(places, len(self.observed), seed)
        # Where whole instruments break, a reading tells which instrument made it.
        sensor = instruments(places) if noise.kind == "clustered" else None
        observations = observe(
            self.problem, points, clean + errors.values, self.observed, sensor=sensor
        )
        return Readings(observations, errors.sigma, errors.is_bad, clean, noise, seed)

    # -- truth -----------------------------------------------------------------------------

    def truth(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Every field and unknown field at points (n, dimensions), each (n,)."""
        points = np.asarray(points, np.float64)
        if points.ndim != 2 or points.shape[1] != self.problem.dimension:
            raise UserError(
                f"the points of {self.name} must be an array (n, {self.problem.dimension}) of "
                f"{', '.join(self.problem.coordinates)}, not of shape {points.shape}"
            )
        columns = points.T
        return {name: np.asarray(exact(*columns)) for name, exact in self.exact.items()}

    def grid_points(self) -> np.ndarray:
        """The whole test grid, (n, dimensions), the last coordinate fastest."""
        return self._grid[0]

    def grid_truth(self) -> dict[str, np.ndarray]:
        """Every field and unknown field on the whole test grid."""
        return self._grid[1]

    def test_rows(self) -> np.ndarray:
        """Which points of the test grid are tested on, (n,): those without a reading's row."""
        tested = np.ones(int(np.prod(self.test_grid.counts)), bool)
        for patch in self.layout:
            if isinstance(patch.sampler, GridRows):
                tested[patch.sampler.rows()] = False
        return tested

    def test_points(self) -> np.ndarray:
        """The points on which errors are measured."""
        return self.grid_points()[self.test_rows()]

    # -- judgement -------------------------------------------------------------------------

    def evaluate(self, source: Any, unknown_values: Mapping[str, Any] | None = None) -> dict:
        """Every error of a reconstruction, in JSON's types.

        `quantity` and `l2re` are the headline as the paper judges it, `state_l2re` is the state's;
        `headline` holds every measure of it, `fields` every measure of every field (a pressure raw
        and, as "p_shifted", without its mean), `unknowns` the errors of every unknown number.
        Spectra are taken over the whole grid, everything else over the test points.

        Arguments:
            source: a fit, a model, or a function from points (n, dimensions) to a mapping from
                names to (n,) arrays.
            unknown_values: the unknown numbers; a fit's or model's own unless told.
        """
        return evaluate(self, source, unknown_values)

    def counts(self) -> dict[str, int]:
        """How many readings, collocation, boundary and initial points there are."""
        counts = {
            "readings": len(self.reading_points()),
            "collocation": len(self.problem.collocation_points(0)),
        }
        # Several conditions on the same faces share their points, as the paper counts them.
        places: dict[str, set[bytes]] = {"boundary": set(), "initial": set()}
        sizes = {"boundary": 0, "initial": 0}
        for number in range(len(self.problem.conditions)):
            points = self.problem.condition_points(number, 0)
            kind = self.problem.condition_kind(number)
            if points.tobytes() not in places[kind]:
                places[kind].add(points.tobytes())
                sizes[kind] += len(points)
        return counts | sizes

    @cached_property
    def _grid(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        points = self.test_grid.draw(self.problem.coordinates)
        truth = self.truth(points)
        for array in (points, *truth.values()):
            array.setflags(write=False)
        return points, truth
