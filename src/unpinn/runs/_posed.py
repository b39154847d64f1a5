"""From settings to everything that a method needs, and to what judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unpinn.problem import Observations, Problem
from unpinn.readings import load_problem_file
from unpinn.runs._configuration import Configuration
from unpinn.runs._trust import remember
from unpinn.training import BUDGETS, Protocol, paper_inversion, recommended
from unpinn.unlearning import Recipe, default_recipe, paper_recipe

if TYPE_CHECKING:
    from unpinn.benchmarks import Benchmark, Readings
    from unpinn.readings import ReadingReport


@dataclass(frozen=True, eq=False)
class Posed:
    """A run, posed.

    Arguments:
        configuration: its settings.
        problem: equations and conditions.
        observations: the readings.
        protocol: how the baseline is trained, at the budget asked for.
        recipe: how to unlearn, at the same budget.
        benchmark: the problem with its exact solution, where there is one.
        readings: the readings with their true errors, where they are simulated.
        reading_report: what became of every row of the readings' file, where there is one.
    """

    configuration: Configuration
    problem: Problem
    observations: Observations
    protocol: Protocol
    recipe: Recipe
    benchmark: Benchmark | None = None
    readings: Readings | None = None
    reading_report: ReadingReport | None = None

    @property
    def sigma_true(self) -> np.ndarray | None:
        """The true noise levels, which the oracle alone is told."""
        return None if self.readings is None else self.readings.sigma_true

    def description(self) -> dict[str, Any]:
        """The settings, with what tells this problem and these readings from any others."""
        return {
            **self.configuration.to_dict(),
            "problem_fingerprint": self.problem.fingerprint,
            "readings_fingerprint": self.observations.fingerprint,
        }


def pose(configuration: Configuration) -> Posed:
    """Build the problem, the readings, the protocol and the recipe that settings ask for."""
    posed = _posed_file if configuration.is_file else _posed_benchmark
    return _at_budget(posed(configuration))


def _posed_benchmark(configuration: Configuration) -> Posed:
    from unpinn.benchmarks import benchmark

    bench = benchmark(configuration.problem, configuration.preset)
    noise = replace(bench.noise, **_numbers(configuration.noise))
    readings = bench.readings(configuration.seed, noise)
    faithful = configuration.protocol == "paper"
    protocol = bench.protocol if faithful else recommended(bench.problem, readings.observations)
    recipe = default_recipe()
    if configuration.recipe == "paper":
        recipe = replace(
            paper_recipe(bench.kind == "assimilation"),
            stages=bench.fine_tune.stages,
            weights=dict(bench.fine_tune.weights),
        )
    return Posed(
        configuration, bench.problem, readings.observations, protocol, recipe, bench, readings
    )


def _posed_file(configuration: Configuration) -> Posed:
    stated = load_problem_file(configuration.problem)
    remember(Path(configuration.problem))
    observations, report = stated.read_data(configuration.data)
    protocol = stated.protocol or recommended(stated.problem, observations)
    recipe = stated.recipe or default_recipe()
    if configuration.protocol == "paper":
        protocol = paper_inversion()
    if configuration.recipe == "paper":
        recipe = paper_recipe(assimilation=False)
    return Posed(
        configuration, stated.problem, observations, protocol, recipe, reading_report=report
    )


def _at_budget(posed: Posed) -> Posed:
    """With the share of epochs that was asked for, in the baseline and in the unlearning alike."""
    epochs, protocol = posed.configuration.epochs, posed.protocol
    share = BUDGETS[posed.configuration.budget] if epochs is None else epochs / protocol.epochs
    if share == 1:
        return posed
    protocol = protocol.scaled_to(share) if epochs is None else protocol.with_epochs(epochs)
    return replace(posed, protocol=protocol, recipe=posed.recipe.scaled_to(share))


def _numbers(noise: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as floats, so that 1 and 1.0 are one setting."""
    return {name: v if isinstance(v, str) else float(v) for name, v in noise.items()}
