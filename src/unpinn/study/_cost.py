"""How long runs take: what was measured once, corrected by what is measured as a study goes on."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import TYPE_CHECKING

from unpinn.rivals import method_named
from unpinn.rivals._bayesian import usual_steps
from unpinn.runs import Posed
from unpinn.training import Adam, Stage

if TYPE_CHECKING:
    from unpinn.study._graph import Node
    from unpinn.study._run import Run
    from unpinn.study._store import Store

# Milliseconds of processor time on one core of a busy server (AMD EPYC): an epoch of Adam on the
# full loss, one on the data alone, and an iteration of L-BFGS in float64.
_MILLISECONDS = {
    "pinv": (74.0, 6.0, 150.0),
    "hinv": (73.0, 5.0, 230.0),
    "nsinv": (60.0, 19.0, 145.0),
    "ebinv": (75.0, 20.0, 160.0),
    "winv": (60.0, 19.0, 125.0),
    "poisson": (3.6, 2.3, 8.5),
    "heat": (5.0, 2.9, 11.0),
    "heat-forced": (5.0, 2.9, 11.0),
    "wave": (23.0, 4.6, 50.0),
    "stokes": (11.0, 3.0, 23.0),
}
# What a method takes of a baseline's time, where it is not the same.
_FACTORS = {"dpinn": 1.3, "ensemble": 3.0, "heteroscedastic": 1.2}
# A pruned network is that much cheaper.
_PRUNED = 0.25
# Further fine-tunings, in rounds and in the refinement, as they were counted on five problems.
_FURTHER = 7
# Compiling and judging.
_START = 12.0
# For a problem that nobody has measured: microseconds a point.
_A_POINT = 6.0


def cost_of(run: Run, posed: Posed) -> float:
    """Seconds of a run on one core, as far as one can tell before it was ever run."""
    method = method_named(run.configuration.method)
    training = sum(_stage(stage, posed) for stage in posed.protocol.stages)
    if method.name == "bpinn":
        # So many gradients, whatever the budget.
        asked = {**method.options, **run.configuration.options}
        draws = asked["burn_in"] + asked["samples"]
        steps = asked["steps"] or usual_steps(posed.protocol)
        return _START + _stage(Adam(epochs=draws * steps), posed)
    if method.needs_baseline and method.name not in ("rt", "mad"):
        pruned = posed.recipe.schedule is not None and method.name != "ft"
        # A pruned network that must not be worse than the whole one is trained beside it.
        whole = not pruned or posed.recipe.accept
        return _START + _tuning(posed) * (whole + _PRUNED * pruned)
    return _START + training * _FACTORS.get(method.name, 1.0)


def _tuning(posed: Posed) -> float:
    """Seconds of a whole network's fine-tuning."""
    recipe, seconds = posed.recipe, lambda stages: sum(_stage(stage, posed) for stage in stages)
    later = recipe.stages if recipe.later is None else recipe.later
    further = recipe.rounds - 1 if recipe.stiffening is None else _FURTHER
    return seconds(recipe.stages) + further * seconds(later)


def _stage(stage: Stage, posed: Posed) -> float:
    full, data, lbfgs = _MILLISECONDS.get(posed.problem.name, (0.0, 0.0, 0.0))
    if not full:
        conditions = range(len(posed.problem.conditions))
        points = len(posed.problem.collocation_points(0)) + sum(
            len(posed.problem.condition_points(number, 0)) for number in conditions
        )
        data = 1e-3 * _A_POINT * len(posed.observations)
        full = data + 1e-3 * _A_POINT * points
        lbfgs = 2 * full
    if isinstance(stage, Adam):
        each = data if tuple(stage.groups) == ("data",) else full
    else:
        each = lbfgs
    return 1e-3 * each * stage.length


class Estimate:
    """Seconds of runs, from those of the same kind that were done.

    The nearest kind that is known decides: the same problem and method, the same problem, any.
    """

    def __init__(self) -> None:
        self._ratios: dict[tuple[str, ...], list[float]] = {}

    @classmethod
    def of(cls, nodes: Iterable[Node], store: Store) -> Estimate:
        """With what a store tells of runs that were finished on this kind of device."""
        import jax

        estimate, here = cls(), jax.devices()[0].platform
        for node in nodes:
            record = store.record(node.address)
            if record is None or not isinstance(record.get("wall"), dict):
                continue
            device = (record.get("environment") or {}).get("device", "cpu")
            if (here == "cpu") == device.lower().startswith(("cpu", "tfrt_cpu")):
                estimate.note(node, sum(record["wall"].values()))
        return estimate

    def note(self, node: Node, seconds: float) -> None:
        """A run took so long."""
        for kind in _kinds(node):
            self._ratios.setdefault(kind, []).append(seconds / node.seconds)

    def knows(self, node: Node) -> bool:
        """Whether a run of the same problem and method was timed."""
        return _kinds(node)[0] in self._ratios

    def seconds(self, node: Node) -> float:
        """How long a run will take."""
        for kind in _kinds(node):
            if kind in self._ratios:
                return node.seconds * median(self._ratios[kind])
        return node.seconds


def _kinds(node: Node) -> tuple[tuple[str, ...], ...]:
    configuration = node.run.configuration
    problem, method = configuration.problem, configuration.method
    return (problem, method, configuration.protocol), (problem,), ()
