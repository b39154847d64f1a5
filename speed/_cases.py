"""What is timed: epochs of ours, and beside some of them the same epoch of PyTorch."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn.benchmarks import _ebinv, _pinv, benchmark
from unpinn.network import Architecture, Model, make_model
from unpinn.training import Adam, Lbfgs, make_data_term, make_objective

RATE = 1e-3
Epochs = Callable[[int], list[float]]


@dataclass
class Ours:
    """One problem's training in this package: `run(count)` gives the loss before each epoch."""

    name: str
    groups: tuple[str, ...] = ("data", "equations", "conditions")
    kind: str = "float32"
    stage: Adam | Lbfgs | None = None
    start: Model | None = None
    model: Model = field(init=False)
    compile_s: float = field(init=False)

    def __post_init__(self):
        self.problem = benchmark(self.name)
        self.observations = self.problem.readings(42).observations
        equations = self.problem.problem
        data = make_data_term(equations, self.observations)
        objective = make_objective(equations, data, seed=0).only(self.groups)
        drawn = make_model(equations, self.observations, Architecture(), 0, scaled=False)
        self.model = self.start or drawn
        with precision.scope(self.kind):
            self.model = precision.cast(self.model, self.kind)
            self._objective = jax.tree.map(jnp.asarray, precision.cast(objective, self.kind))
            self._stage = self.stage or Adam(rate=RATE, precision=self.kind)
            self._key = jax.random.key(0)
            self._state = self._stage.start(self._objective, self.model, self._key)
        # How many epochs run is a traced number: none of them is compilation alone.
        self.compile_s = timed(lambda: self.run(0))[0] / 1e3

    def run(self, count: int) -> list[float]:
        with precision.scope(self.kind):
            self._state, rows, _ = self._stage.advance(
                self._objective, self.model, self._state, count, self._key
            )
            jax.block_until_ready(self._state)
            return np.asarray(rows)[:, 0].tolist()

    def trained(self) -> Model:
        """The model as it is now."""
        return self._stage.model(self.model, self._state)

    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights and biases of every layer as they were drawn."""
        network = self.model.network
        linears = [*network.hidden, network.output]
        return [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in linears]

    def points(self) -> dict[str, np.ndarray]:
        """Where each group of terms is computed."""
        problem = self.problem.problem
        found = {"data": self.observations.points, "equations": problem.collocation_points(0)}
        for number in range(len(problem.conditions)):
            found[problem.condition_kind(number)] = problem.condition_points(number, 0)
        return found


def pinv_pair() -> tuple[Ours, Epochs]:
    """PInv: second order in two coordinates, two fields."""
    from speed import _torch_reference as theirs

    ours = Ours("pinv")
    points = ours.points()
    values = {
        "data": ours.observations.values[:, 0],
        "forcing": _pinv.forcing(*points["equations"].T),
        "boundary": _pinv.exact_a(*points["boundary"].T),
    }
    return ours, theirs.pinv(ours.layers(), points, values, RATE)


def beam_pair() -> tuple[Ours, Epochs]:
    """The beam: fourth order in space, second in time, an unknown number."""
    from speed import _torch_reference as theirs

    ours = Ours("ebinv")
    points = ours.points()
    values = {
        "data": ours.observations.values[:, 0],
        "initial": _ebinv.exact_u(*points["initial"].T),
    }
    alpha = float(ours.model.unknowns()["alpha"])
    return ours, theirs.beam(ours.layers(), points, values, RATE, alpha)


def stage_case(iterations: int) -> dict:
    """The paper's L-BFGS stage on heat in float64, after 2,000 epochs on the readings alone."""
    whole = 5000
    before = Ours("heat", ("data",))
    for _ in range(4):
        before.run(500)
    stage = Lbfgs(iterations=whole, tolerance=0.0)
    ours = Ours("heat", kind="float64", stage=stage, start=before.trained())
    losses: list[float] = []

    def all_of_it() -> None:
        while (left := iterations - len(losses)) > 0 and (more := ours.run(min(left, 500))):
            losses.extend(more)

    clock, processors = timed(all_of_it)
    return {
        "case": f"heat, {whole} iterations of L-BFGS, float64",
        "iterations": len(losses),
        "ours_s": round(clock / 1e3, 1),
        "ours_cpu_s": round(processors / 1e3, 1),
        # What the whole stage takes at this rate.
        "whole_s": round(clock / 1e3 * whole / len(losses), 1),
        "whole_cpu_s": round(processors / 1e3 * whole / len(losses), 1),
        "target_s": 60,
        "loss": [losses[0], losses[-1]],
        "compile_s": round(ours.compile_s, 2),
    }


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds on the clock and of all processors that a call takes."""
    clock, processors = time.perf_counter(), time.process_time()
    run()
    return 1e3 * (time.perf_counter() - clock), 1e3 * (time.process_time() - processors)


def best(runs: list[Epochs], count: int, rounds: int) -> list[tuple[float, float]]:
    """For each the least time an epoch took, on the clock and of processors; they take turns.

    The least of many, since other programs on the machine only ever add to it.
    """
    found = [(np.inf, np.inf)] * len(runs)
    for _ in range(rounds):
        for number, run in enumerate(runs):
            # The threads of one library may wait busily for a moment after its turn.
            time.sleep(0.05)
            once = timed(lambda run=run: run(count))
            found[number] = tuple(np.minimum(found[number], np.divide(once, count)).tolist())
    return found


def assert_same_losses(ours: list[float], theirs: list[float]) -> None:
    """Both must compute the same thing: equal at the start to rounding, nearly so later."""
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)


_READY = "import unpinn; [getattr(unpinn, name) for name in unpinn.__all__]"
_PEAK = "from speed._cases import peak_memory; print(peak_memory())"


def import_ms(statement: str, rounds: int = 5) -> tuple[float, float]:
    """The least time that imports took in a fresh interpreter, on the clock and of processors."""
    code = (
        "import time; clock, processor = time.perf_counter(), time.process_time(); "
        f"{statement}; print(time.perf_counter() - clock, time.process_time() - processor)"
    )
    found = np.array([_fresh(code).split() for _ in range(rounds)], float)
    clock, processor = 1e3 * found.min(axis=0)
    return round(float(clock), 1), round(float(processor), 1)


def peak_memory() -> float:
    """This process's largest memory in GB after some epochs of PInv."""
    Ours("pinv").run(5)
    status = Path("/proc/self/status")
    if status.exists():
        # What `getrusage` gives there begins with the memory of the process that started this one.
        (peak,) = re.findall(r"VmHWM:\s*(\d+) kB", status.read_text())
        return int(peak) * 1024 / 1e9
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used * (1 if sys.platform == "darwin" else 1024) / 1e9


def _fresh(code: str) -> str:
    root = Path(__file__).parent.parent
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def import_case(rounds: int = 5) -> dict:
    (package, package_cpu), (every, every_cpu) = (
        import_ms(statement, rounds) for statement in ("import unpinn", _READY)
    )
    return {
        "case": "import unpinn",
        "ours_ms": package,
        "ours_cpu_ms": package_cpu,
        "every_name_ms": every,
        "every_name_cpu_ms": every_cpu,
        "target_ms": 1500,
    }


def memory_case() -> dict:
    return {"case": "pinv peak memory", "ours_gb": round(float(_fresh(_PEAK)), 3), "target_gb": 1.5}
