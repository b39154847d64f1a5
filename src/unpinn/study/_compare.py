"""Several methods on the same readings, as rows of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn.runs import Configuration, Posed, Run, check_method, execute, execute_or_read, pose
from unpinn.training import Fit, Watcher

COLUMNS = (
    "problem", "noise", "method", "recipe", "seed", "budget", "quantity", "l2re", "state_l2re",
    "unknowns", "seconds", "neurons_left", "detection_auc", "status",
)  # fmt: skip
BASELINE = "pinn"


def compare(
    problem: str,
    methods: Sequence[str] = ("pinn", "ppinn", "huber", "mixture", "oracle"),
    seeds: Sequence[int] = (42,),
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    directory: Any = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Run methods on the same readings, with the same protocol, budget and seed.

    The plain network is trained once a seed and handed to all methods that start from it. A row's
    `seconds` are the method's own: those that start from the plain network need its time too.

    Arguments:
        problem: a benchmark's name, or the path of a Python file that states a problem.
        methods: names of methods.
        seeds: of everything random, the simulated noise included.
        options: settings of methods, by method.
        directory: where every run keeps itself; finished runs that are there are read, not run.
        watcher: is told how training goes.
        settings: further ones of `unpinn.runs.Configuration`: protocol, recipe, preset, budget,
            epochs, noise, data.
    """
    options = dict(options or {})
    stray = [name for name in options if name not in methods]
    if stray:
        raise UserError(f"there are settings for {stray[0]!r}, which is not among the methods")
    rows = []
    for seed in seeds:
        asked = {
            name: pose(
                Configuration(problem, name, seed=seed, options=options.get(name, {}), **settings)
            )
            for name in methods
        }
        # Whatever cannot be run is refused before anything is trained.
        needed = [check_method(posed).needs_baseline for posed in asked.values()]
        place = None if directory is None else Path(directory) / str(seed)
        runs: dict[str, Run] = {}
        if any(needed) and BASELINE not in asked:
            first = next(iter(asked.values())).configuration
            plain = pose(replace(first, method=BASELINE, options={}))
            runs[BASELINE] = _run(plain, place, None, watcher)
        for name in sorted(asked, key=lambda name: name != BASELINE):
            baseline = runs[BASELINE].fit if BASELINE in runs else None
            runs[name] = _run(asked[name], place, baseline, watcher)
        for name in asked:
            record = runs[name].records[-1]
            rows.append({column: record.get(column) for column in COLUMNS})
    return rows


def _run(posed: Posed, place: Path | None, baseline: Fit | None, watcher: Watcher | None) -> Run:
    if place is None:
        return execute(posed, baseline=baseline, watcher=watcher, pictures=False)
    where = place / posed.configuration.method
    return execute_or_read(posed, where, baseline=baseline, watcher=watcher, pictures=False)
