"""Time what unlearning costs beside training, one JSON line a case.

    python -m speed.unlearning                       # every case on poisson and pinv
    python -m speed.unlearning --case compact --problem pinv --rounds 20

overhead: scores, partition, pruning in 20 steps and compaction, over the baseline's whole training.
The baseline's time is that of its epochs and iterations, measured on a few of each stage and
multiplied by the protocol's lengths; compilation is left out of it. `first_s` is what a user waits
for, the compilation of scores and activations included; `again_s` is the least of the repetitions.
compact: a fine-tuning epoch of Adam in float32 with 36 of 100 neurons a layer over one with all.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from speed import _cases as cases

from unpinn import precision
from unpinn.benchmarks import benchmark
from unpinn.network import Model
from unpinn.training import (
    Adam,
    Fit,
    Partition,
    Protocol,
    Quiet,
    Stage,
    make_data_term,
    make_objective,
    recommended,
    train,
)
from unpinn.unlearning import (
    NativePrunable,
    Recipe,
    Schedule,
    compacted,
    default_recipe,
    paper_recipe,
    prune,
    scores_of,
)

SEED = 42
# Epochs of each stage that the fit to unlearn has behind it, and epochs timed at a time.
BEHIND, AT_ONCE = 40, 5


class Epochs:
    """One stage of training from a fit's model, or from a smaller one."""

    def __init__(self, fit: Fit, stage: Stage, model: Model):
        problem = fit.problem
        there = tuple(g for g in stage.groups if g != "conditions" or problem.conditions)
        data = make_data_term(problem, fit.observations)
        objective = make_objective(problem, data, SEED, scales=fit.details["scales"]).only(there)
        with precision.scope("float64"):
            self._model = precision.cast(model, stage.precision)
        with precision.scope(stage.precision):
            kind = np.dtype(stage.precision)
            self._objective = jax.tree.map(
                lambda a: jnp.asarray(a, kind) if hasattr(a, "dtype") else a, objective
            )
            self._stage, self._key = stage, jax.random.key(0)
            self._state = stage.start(self._objective, self._model, self._key)
        self(0)

    def __call__(self, count: int) -> list[float]:
        with precision.scope(self._stage.precision):
            self._state, rows, _ = self._stage.advance(
                self._objective, self._model, self._state, count, self._key
            )
            jax.block_until_ready(self._state)
            return np.asarray(rows)[:, 0].tolist()


def short_fit(name: str, protocol: Protocol) -> Fit:
    """A baseline that has seen a few epochs of every stage."""
    chosen = benchmark(name)
    share = [stage.scaled_to(BEHIND / stage.length) for stage in protocol.stages]
    short = Protocol(tuple(share), protocol.scaled, protocol.weights, protocol.architecture)
    return train(chosen.problem, chosen.readings(SEED).observations, short, SEED, watcher=Quiet())


def baseline_seconds(fit: Fit, protocol: Protocol, rounds: int) -> float:
    """What all of a protocol's epochs would take, from the least time of one in every stage."""
    total = 0.0
    for stage in protocol.stages:
        [(epoch_ms, _)] = cases.best([Epochs(fit, stage, fit.model)], AT_ONCE, rounds)
        total += epoch_ms * stage.length / 1e3
    return total


def forget(fit: Fit, recipe: Recipe) -> tuple[Partition, Model]:
    """Parts I and II of Algorithm 1, with the compaction."""
    assert fit.observations is not None and recipe.schedule is not None
    partition = recipe.rule(scores_of(fit, recipe.residual_weight))
    seen = NativePrunable(fit.model, fit.observations.points)
    smaller, _ = prune(seen, partition, recipe.schedule, fit.seed)
    return partition, compacted(smaller.model)


def overhead(name: str, rounds: int) -> Iterator[dict]:
    """Both recipes, each beside the protocol that it goes with."""
    paper = benchmark(name).protocol
    assimilation = len(paper.stages) > 1
    observations = benchmark(name).readings(SEED).observations
    ours = recommended(benchmark(name).problem, observations)
    posed = {"paper": (paper, paper_recipe(assimilation)), "default": (ours, default_recipe())}
    for which, (protocol, recipe) in posed.items():
        fit = short_fit(name, protocol)
        # Nothing that the other recipe has compiled may help this one.
        jax.clear_caches()
        first, _ = cases.timed(lambda fit=fit, recipe=recipe: forget(fit, recipe))
        again = min(
            cases.timed(lambda fit=fit, recipe=recipe: forget(fit, recipe))[0]
            for _ in range(rounds)
        )
        baseline = baseline_seconds(fit, protocol, rounds)
        yield {
            "recipe": which,
            "epochs": [stage.length for stage in protocol.stages],
            "baseline_s": round(baseline, 2),
            "first_s": round(first / 1e3, 3),
            "again_s": round(again / 1e3, 3),
            "share_first": round(first / 1e3 / baseline, 4),
            "share_again": round(again / 1e3 / baseline, 4),
            "target_share": 0.03,
        }


def compact(name: str, rounds: int) -> Iterator[dict]:
    """Adam's epoch on all terms, in turns with and without the removed neurons."""
    fit = short_fit(name, benchmark(name).protocol)
    assert fit.observations is not None
    partition = default_recipe().rule(scores_of(fit))
    seen = NativePrunable(fit.model, fit.observations.points)
    smaller, pruning = prune(seen, partition, Schedule(criterion="random"), SEED)
    runs = [Epochs(fit, Adam(), model) for model in (fit.model, compacted(smaller.model))]
    (full, full_cpu), (small, small_cpu) = cases.best(runs, AT_ONCE, rounds)
    yield {
        "neurons": [list(pruning.before), list(pruning.after)],
        "full_ms": round(full, 2),
        "compact_ms": round(small, 2),
        "ratio": round(small / full, 3),
        "cpu_ratio": round(small_cpu / full_cpu, 3),
        "target_ratio": 0.4,
    }


CASES: dict[str, Callable[[str, int], Iterator[dict]]] = {"overhead": overhead, "compact": compact}


def main() -> None:
    """Print one JSON line a case."""
    parser = argparse.ArgumentParser(prog="python -m speed.unlearning", description=__doc__)
    parser.add_argument("--problem", action="append", help="poisson and pinv unless told")
    parser.add_argument("--case", action="append", choices=CASES, help="all unless told")
    parser.add_argument("--rounds", type=int, default=8, help="repetitions of each timing")
    options = parser.parse_args()
    for problem in options.problem or ("poisson", "pinv"):
        for name in options.case or CASES:
            for line in CASES[name](problem, options.rounds):
                load = round(os.getloadavg()[0], 1)
                print(json.dumps({"case": name, "problem": problem, **line, "load": load}))
                sys.stdout.flush()


if __name__ == "__main__":
    main()
