"""Long work takes no more memory than short work, and compiles no more."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
import victim
from jax import monitoring

from unpinn.training import Adam, Lbfgs, Protocol, train
from unpinn.unlearning import ByMixture, Recipe, Schedule, unlearn

_COMPILED = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """The programs that were compiled since the test began, or since it cleared the list."""
    events: list[str] = []

    def listen(event: str, _: float, **told: object) -> None:
        if event == _COMPILED:
            events.append(str(told.get("fun_name", "")))

    monitoring.register_event_duration_secs_listener(listen)
    yield events
    # A listener cannot be taken away again by public means; this one's list is nobody's any more.
    gc.collect()


def fitted(*stages, seed: int = 7, posed=None):
    posed = posed or victim.decay()
    return train(*posed, Protocol(stages, architecture=victim.TINY), seed=seed)


def counted(compiled: list[str], work) -> int:
    jax.clear_caches()
    compiled.clear()
    work()
    return len(compiled)


def test_a_listener_hears_what_is_compiled(compiled):
    assert counted(compiled, lambda: jax.jit(lambda x: x * 3.5)(2.0)) > 0


@pytest.mark.parametrize(
    "stage",
    [
        lambda n: Adam(epochs=n, rate=1e-2),
        lambda n: Adam(epochs=n, rate=1e-2, batch=6, dropout=0.1),
        lambda n: Lbfgs(iterations=n, tolerance=0.0),
    ],
    ids=["adam", "batches", "lbfgs"],
)
def test_ten_times_the_epochs_compile_no_more(stage, compiled):
    few, many = (counted(compiled, lambda n=n: fitted(stage(n))) for n in (20, 200))
    assert 0 < many <= few


def test_another_seed_compiles_nothing_at_all(compiled):
    # One statement: functions that are written down twice are two programs.
    posed = victim.decay()
    fitted(Adam(epochs=20), posed=posed)
    compiled.clear()
    fitted(Adam(epochs=20), seed=8, posed=posed)
    assert compiled == []


def test_more_steps_of_pruning_compile_no_more(compiled):
    fit = fitted(Adam(epochs=30, rate=1e-2))

    def pruned(steps: int) -> int:
        # Little enough is removed that both leave the same network behind.
        schedule = Schedule(steps=steps, fraction=0.2 / steps, least=4)
        recipe = Recipe("tiny", ByMixture(), schedule, (Adam(epochs=5),))
        return counted(compiled, lambda: unlearn(fit, recipe))

    few, many = pruned(2), pruned(8)
    assert 0 < many <= few


# -- memory -----------------------------------------------------------------------------------

_BEGIN = """
import gc, resource, sys
sys.path.insert(0, sys.argv[1])
import victim
from unpinn.training import Adam, Lbfgs, Protocol, train
from unpinn.unlearning import ByMixture, Recipe, Schedule, unlearn

def megabytes():
    gc.collect()
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024

CASE = victim.decay()

def fitted(epochs, seed=7, watcher=None, case=CASE):
    stages = (Adam(epochs=epochs, rate=1e-2), Lbfgs(iterations=5))
    return train(*case, Protocol(stages, architecture=victim.TINY), seed=seed,
                 watcher=watcher)
"""
_EPOCHS = """
seen = []
fitted(20_000, watcher=lambda now: seen.append((now.epoch, megabytes())) if now.stage == 1 else 0)
print(*(size for epoch, size in seen if epoch >= 2_000))
"""
_RUNS = """
recipe = Recipe("tiny", ByMixture(), Schedule(steps=2, fraction=0.1), (Adam(epochs=5),))
sizes = []
for seed in range(200):
    unlearn(fitted(40, seed), recipe)
    sizes.append(megabytes())
print(*sizes[40:])
"""


_PROBLEMS = """
mapped = []
for seed in range(40):
    unlearn(fitted(40, seed, case=victim.decay()), Recipe(
        "tiny", ByMixture(), Schedule(steps=2, fraction=0.1), (Adam(epochs=5),)))
    mapped.append(sum(1 for _ in open("/proc/self/maps")))
print(*mapped)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not tell")
def test_problem_after_problem_does_not_fill_the_process():
    """A process may have 65,530 mappings; every new problem's programs take about a thousand."""
    told = subprocess.run(
        [sys.executable, "-c", _BEGIN + _PROBLEMS, str(Path(__file__).parent)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    mapped = [int(word) for word in told.stdout.split()]
    assert len(mapped) == 40 and max(mapped) < 30_000
    assert max(mapped[20:]) < 1.1 * max(mapped[:20])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell")
@pytest.mark.parametrize(("work", "most"), [(_EPOCHS, 12.0), (_RUNS, 40.0)], ids=["epochs", "runs"])
def test_memory_is_flat(work, most):
    told = subprocess.run(
        [sys.executable, "-c", _BEGIN + work, str(Path(__file__).parent)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    sizes = [float(word) for word in told.stdout.split()]
    print(f"{sizes[0]:.1f} MB, then {sizes[-1]:.1f}, at most {max(sizes):.1f}")
    assert len(sizes) > 5
    # The history itself is a few numbers an epoch; a program that is kept is megabytes.
    assert max(sizes) - sizes[0] < most
