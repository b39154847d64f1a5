"""Time what the rivals cost beside the plain network, one JSON line a case.

    python speed/rivals.py                       # every case on poisson and heat-forced
    python speed/rivals.py --problem pinv --case dropout --repeat 9

dropout: an epoch with dropout over one without, on the readings alone and on all terms.
ensemble: an epoch of three members under vmap over an epoch of one.
sampling: 70 samples over the baseline's 20,000 epochs, at the default number of leapfrog steps.
Cases are timed in alternation and compared by their medians.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unpinn.benchmarks import benchmark
from unpinn.network import Architecture, make_model
from unpinn.precision import scope
from unpinn.rivals import Task
from unpinn.rivals._bayesian import _steps, entries, log_posterior
from unpinn.rivals._chain import Sampler, _first, _transition
from unpinn.training import Adam, Objective, make_data_term, make_objective
from unpinn.training._stages import flatten
from unpinn.training._together import Together, stacked

EPOCHS, MEMBERS, SAMPLES, BASELINE = 20, 3, 70, 20_000
ALL = ("data", "equations", "conditions")


class Case:
    """One problem at the start of its training, in float32."""

    def __init__(self, name: str):
        self.benchmark = benchmark(name)
        self.problem, self.readings = self.benchmark.problem, self.benchmark.readings(42)
        self.models = [
            make_model(self.problem, self.readings.observations, Architecture(), seed, False)
            for seed in range(MEMBERS)
        ]

    def objective(self, groups: tuple[str, ...]) -> Objective:
        data = make_data_term(self.problem, self.readings.observations)
        there = tuple(g for g in groups if g != "conditions" or self.problem.conditions)
        objective = make_objective(self.problem, data, 42).only(there)
        return jax.tree_util.tree_map(
            lambda a: jnp.asarray(a, np.float32) if hasattr(a, "dtype") else a, objective
        )

    @property
    def first_groups(self) -> tuple[str, ...]:
        """What the baseline's 20,000 epochs train on."""
        return tuple(self.benchmark.protocol.stages[0].groups)

    def epochs(self, stage: Any, groups: tuple[str, ...], model: Any) -> Callable[[], Any]:
        """A function that runs EPOCHS epochs."""
        objective, key = self.objective(groups), jax.random.key(0)
        state = stage.start(objective, model, key)
        return lambda: stage.advance(objective, model, state, EPOCHS, key)[0]


def timed(works: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Median seconds of each, in alternation, compilation apart."""
    for work in works.values():
        jax.block_until_ready(work())
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            begin = time.perf_counter()
            jax.block_until_ready(work())
            taken[name].append(time.perf_counter() - begin)
    return {name: median(values) for name, values in taken.items()}


def dropout(case: Case, repeat: int):
    for groups in dict.fromkeys((case.first_groups, ALL)):
        works = {
            name: case.epochs(Adam(dropout=rate), groups, case.models[0])
            for name, rate in (("plain", 0.0), ("dropout", 0.1))
        }
        found = timed(works, repeat)
        yield {
            "terms": "all" if groups == ALL else "data",
            "epoch_ms": round(1e3 * found["plain"] / EPOCHS, 4),
            "ratio": round(found["dropout"] / found["plain"], 3),
        }


def ensemble(case: Case, repeat: int):
    for groups in dict.fromkeys((case.first_groups, ALL)):
        works = {
            "one": case.epochs(Adam(), groups, case.models[0]),
            "together": case.epochs(Together(Adam(), MEMBERS), groups, stacked(case.models)),
        }
        found = timed(works, repeat)
        yield {
            "terms": "all" if groups == ALL else "data",
            "members": MEMBERS,
            "epoch_ms": round(1e3 * found["one"] / EPOCHS, 4),
            "ratio": round(found["together"] / found["one"], 3),
        }


def sampling(case: Case, repeat: int):
    task = Task(
        case.problem, case.readings.observations, case.benchmark.protocol, options={"steps": None}
    )
    sampler = Sampler(steps=_steps(task))
    objective, model = case.objective(ALL), case.models[0]
    counts = entries(objective)
    weights = [counts[name] / 2 for name in objective.names]
    given = (objective.weighted(jnp.asarray(weights, jnp.float32)), model)
    key = jax.random.key(0)
    state, _ = _first(0.8, log_posterior, given, flatten(model), key, 1e-3)
    step = jnp.float32(1e-4)
    works = {
        "epochs": case.epochs(Adam(), case.first_groups, model),
        "sample": lambda: _transition(sampler, log_posterior, given, tuple(state), step, key),
    }
    found = timed(works, repeat)
    baseline = found["epochs"] / EPOCHS * BASELINE
    yield {
        "leapfrog_steps": sampler.steps,
        "sample_ms": round(1e3 * found["sample"], 3),
        "share": round(SAMPLES * found["sample"] / baseline, 4),
    }


CASES = {"dropout": dropout, "ensemble": ensemble, "sampling": sampling}


def main() -> None:
    """Print one JSON line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", action="append")
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--repeat", type=int, default=15)
    chosen = parser.parse_args()
    for problem in chosen.problem or ("poisson", "heat-forced"):
        with scope("float32"):
            case = Case(problem)
            for name in chosen.case or CASES:
                for line in CASES[name](case, chosen.repeat):
                    print(json.dumps({"case": name, "problem": problem, **line}), flush=True)


if __name__ == "__main__":
    main()
