"""The same seed gives the same bits, whatever else is done, in which order and by how many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import victim

from unpinn._files import read_arrays
from unpinn.study import (
    Choice,
    InProcess,
    LocalProcesses,
    Source,
    Store,
    graph_of,
    parse_plan,
    run_study,
)
from unpinn.training import Adam, Lbfgs, Protocol, train
from unpinn.unlearning import ByMixture, Recipe, Schedule, unlearn

STAGES = {
    "adam": (Adam(epochs=30, rate=1e-2, rescale="measured"),),
    "batches": (Adam(epochs=15, rate=1e-2, batch=6),),
    "dropout": (Adam(epochs=15, rate=1e-2, dropout=0.1),),
    "lbfgs": (Adam(epochs=5, rate=1e-2), Lbfgs(iterations=20)),
}
RECIPE = Recipe(
    "tiny", ByMixture(), Schedule(steps=2, fraction=0.2), (Adam(epochs=10, rate=1e-3),), rounds=2
)


def fitted(kind: str, seed: int = 7):
    return train(
        *victim.decay(), Protocol(STAGES[kind], architecture=victim.TINY), seed=seed
    )  # fmt: skip


def bits(fit) -> str:
    return victim.digest_of_fit(fit)


@pytest.mark.parametrize("kind", STAGES)
def test_the_same_seed_gives_the_same_bits_and_another_seed_other_ones(kind):
    first = fitted(kind)
    assert bits(fitted(kind)) == bits(first)
    other = fitted(kind, seed=8)
    assert other.unknowns != first.unknowns
    weights = [jax.tree_util.tree_leaves(fit.model.network)[0] for fit in (first, other)]
    assert not np.array_equal(*map(np.asarray, weights))


def test_unlearning_gives_the_same_bits_and_follows_the_baseline_seed():
    found = [unlearn(fitted("adam", seed), RECIPE) for seed in (7, 7, 8)]
    assert bits(found[0]) == bits(found[1]) != bits(found[2])
    assert np.array_equal(found[0].suspects, found[1].suspects)


def test_the_order_of_runs_and_what_was_compiled_before_change_nothing():
    forth = {kind: bits(fitted(kind)) for kind in STAGES}
    jax.clear_caches()
    back = {kind: bits(fitted(kind)) for kind in reversed(STAGES)}
    assert back == forth


def test_the_state_of_other_generators_changes_nothing():
    before = bits(fitted("dropout"))
    np.random.seed(99)
    assert bits(fitted("dropout")) == before
    state = np.random.get_state()[1].copy()
    fitted("batches")
    # Nor does training change theirs.
    assert np.array_equal(np.random.get_state()[1], state)


# -- studies ----------------------------------------------------------------------------------


def records(folder: Path, executor, seeds=(1, 2)) -> dict[str, object]:
    """What a study in a new folder found, without times; the problem file is the same one."""
    victim.statement(folder.parent)
    text = victim.PLAN.replace("decay.py", str(folder.parent / "decay.py"))
    graph = graph_of([parse_plan(Source("decay.toml", text))], Choice("short", seeds))
    store = Store(folder / "store")
    assert not run_study(graph, store, executor).failed
    found = {}
    for address in graph.nodes:
        arrays, _ = read_arrays(store.place(address).fit / "fit.safetensors")
        # Not the file's bytes, since safetensors writes its description in any order.
        bits = {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()}
        found[address] = [victim.substance(store.record(address)), bits]
    return found


def test_a_study_in_another_order_finds_the_same(tmp_path):
    forth = records(tmp_path / "forth", InProcess())
    assert records(tmp_path / "back", InProcess(), (2, 1)) == forth


@pytest.mark.slow
def test_a_study_finds_the_same_with_any_number_of_workers(tmp_path):
    alone = records(tmp_path / "alone", InProcess())
    for workers in (1, 2, 3):
        many = records(tmp_path / str(workers), LocalProcesses(workers))
        assert many == alone


# -- other processes --------------------------------------------------------------------------

_SCRIPT = """
import sys; sys.path.insert(0, sys.argv[1])
import json, pathlib, victim
from unpinn.training import Adam, Lbfgs, Protocol, train
fit = train(*victim.decay(), Protocol(
    (Adam(epochs=20, rate=1e-2), Adam(epochs=10, batch=6), Lbfgs(iterations=20)),
    architecture=victim.TINY), seed=7)
print(json.dumps([victim.digest_of_fit(fit), fit.unknowns["k"]]))
"""


@pytest.mark.slow
def test_another_process_gives_the_same_bits_whatever_its_hash_seed_and_threads(tmp_path):
    found = []
    for hashing, flags in (("0", ""), ("1", ""), ("2", "--xla_cpu_multi_thread_eigen=false")):
        environment = {**os.environ, "PYTHONHASHSEED": hashing, "XLA_FLAGS": flags}
        told = subprocess.run(
            [sys.executable, "-c", _SCRIPT, str(Path(__file__).parent)], env=environment,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.append(json.loads(told.stdout))
    # Networks as small as these are one thread's work however many there are.
    assert found[0] == found[1] == found[2]
