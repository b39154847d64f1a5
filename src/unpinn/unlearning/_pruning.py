"""Part II of Algorithm 1: remove neurons step by step, looking again after each step.

Nothing here knows what kind of network it is: a `Prunable` shows its activations on the readings
and silences neurons when told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from unpinn._errors import UserError
from unpinn.training import Partition, Pruning, PruningStep
from unpinn.unlearning._importance import Criterion, LayerView, criterion

Self = TypeVar("Self", bound="Prunable")

# A neuron that varies by less than this share of its layer's liveliest one is constant.
_CONSTANT = 1e-3
# A layer whose liveliest neuron has lost all but this share of its spread is dead.
_DEAD = 0.02


@runtime_checkable
class Prunable(Protocol):
    """A network as pruning sees it, whatever framework it lives in."""

    def activations(self) -> list[np.ndarray]:
        """Each prunable layer's activations on all readings, (N, neurons), removed ones zero."""
        ...

    def alive(self) -> list[np.ndarray]:
        """Which neurons of each layer remain, (neurons,) of bool."""
        ...

    def norms(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """Norms of incoming and outgoing weights, (neurons,) each."""
        ...

    def remove(self: Self, layer: int, neurons: np.ndarray, constants: np.ndarray) -> Self:
        """Silence neurons for good, handing each one's constant on to the next layer's bias."""
        ...


@dataclass(frozen=True)
class Schedule:
    """How much is removed, in how many steps, and how carefully.

    Arguments:
        fraction: of what remains, at every step.
        steps: how many; `at_once` gives the schedule that removes as much in one.
        layers: which prunable layers, all unless told.
        criterion: the importance, by name or as a function.
        fold: hand each removed neuron's mean over the retained readings on to the next layer.
        constants: remove neurons that do not vary first, counting towards the quota; what they
            hand on is folded whether or not `fold` is on, so that nothing is lost with them.
        epsilon: added to variances; None takes a thousandth of the layer's median variance, so
            that it means the same whatever the activations' size.
        least: neurons that stay in every layer.
        guard: stop before a step after which some layer would carry no signal.
    """

    fraction: float = 0.05
    steps: int = 20
    layers: tuple[int, ...] | None = None
    criterion: str | Criterion = "bias"
    fold: bool = True
    constants: bool = True
    epsilon: float | None = None
    least: int = 2
    guard: bool = True

    def __post_init__(self):
        if not 0 <= self.fraction < 1:
            raise UserError(f"the fraction to prune must be in [0, 1), not {self.fraction}")
        if self.steps < 0 or self.least < 0:
            raise UserError("pruning steps and the least number of neurons must not be negative")
        # A misspelt name is told before anything is trained.
        criterion(self.criterion)

    @property
    def share_left(self) -> float:
        """How many neurons stay in the end."""
        return (1 - self.fraction) ** self.steps

    def at_once(self) -> Schedule:
        """The same sparsity in a single step."""
        return replace(self, fraction=1 - self.share_left, steps=1)


def prune(
    network: Self, partition: Partition, schedule: Schedule, seed: int = 0
) -> tuple[Self, Pruning]:
    """Prune a network with respect to a partition.

    Every step recomputes activations and importance with what remains, in all chosen layers, and
    removes from each layer `fraction` of its remaining neurons.
    """
    before = tuple(int(alive.sum()) for alive in network.alive())
    layers = _layers(schedule, len(before))
    steps: list[PruningStep] = []
    constant = np.zeros(len(before), int)
    activations, note = network.activations(), ""
    _check_readings(activations, partition)
    spread = _spread(activations, partition.retained)
    for number in range(schedule.steps):
        plan = _Step(network, partition, schedule, activations, spread, before, number, seed)
        smaller, step, exact = plan.take(layers)
        activations = smaller.activations()
        if schedule.guard and (_spread(activations, partition.retained) < _DEAD * spread).any():
            note = f"stopped before step {number + 1}, after which a layer would carry no signal"
            break
        network = smaller
        constant += exact
        steps.append(step)
    after = tuple(int(alive.sum()) for alive in network.alive())
    name = schedule.criterion
    name = name if isinstance(name, str) else getattr(name, "__name__", "custom")
    counts = tuple(int(c) for c in constant)
    return network, Pruning(name, tuple(steps), before, after, schedule.fold, counts, note)


@dataclass(frozen=True, eq=False)
class _Step:
    """One pruning step, seen from the network as it is now."""

    network: Prunable
    partition: Partition
    schedule: Schedule
    activations: list[np.ndarray]
    spread: np.ndarray
    before: tuple[int, ...]
    number: int
    seed: int

    def take(self, layers: tuple[int, ...]):
        """Choose in every layer first, then remove: choices must not see each other's effect."""
        chosen = {layer: self._choose(layer) for layer in layers}
        network = self.network
        for layer, (_, neurons, still) in chosen.items():
            mean = self.activations[layer][self.partition.retained].mean(axis=0)
            folded = neurons if self.schedule.fold else still
            handed = np.zeros_like(mean)
            handed[folded] = mean[folded]
            network = network.remove(layer, neurons, handed)
        exact = np.zeros(len(self.before), int)
        exact[list(layers)] = [len(still) for _, _, still in chosen.values()]
        scores = tuple(score for score, _, _ in chosen.values())
        return network, PruningStep(layers, scores, tuple(n for _, n, _ in chosen.values())), exact

    def _choose(self, layer: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A layer's scores, the neurons to remove, and those of them that are constant."""
        alive = self.network.alive()[layer]
        score = self._importance(layer, alive)
        order = np.flatnonzero(alive)
        quota = self._quota(layer, len(order))
        # A stable sort settles ties by place, so that every framework removes the same neurons.
        ranked = order[np.argsort(-score[order], kind="stable")]
        constant = ranked[:0]
        if self.schedule.constants:
            deviation = self.activations[layer][:, ranked].std(axis=0)
            still = deviation <= _CONSTANT * self.spread[layer]
            constant = ranked[still]
            ranked = np.concatenate([constant, ranked[~still]])
        return score, np.sort(ranked[:quota]), constant[:quota]

    def _quota(self, layer: int, left: int) -> int:
        """As many as bring the layer to round(n (1 - f)^k), whatever was rounded before."""
        share = (1 - self.schedule.fraction) ** (self.number + 1)
        return max(0, left - max(round(self.before[layer] * share), self.schedule.least))

    def _importance(self, layer: int, alive: np.ndarray) -> np.ndarray:
        activations, epsilon = self.activations[layer], self.schedule.epsilon
        if epsilon is None:
            typical = float(np.median(activations[:, alive].var(axis=0))) if alive.any() else 0.0
            epsilon = max(1e-3 * typical, 1e-12)
        view = LayerView(
            activations, self.partition.retained, *self.network.norms(layer), epsilon,
            self.seed + 1000 * self.number + layer, self.partition.weight,
        )  # fmt: skip
        score = np.asarray(criterion(self.schedule.criterion)(view), np.float64)
        if score.shape != alive.shape or np.isnan(score[alive]).any():
            raise UserError(
                f"the criterion must give one number for each of the {len(alive)} neurons of layer "
                f"{layer}, but gave shape {score.shape} or values that are not numbers"
            )
        return np.where(alive, score, np.nan)


def _spread(activations: list[np.ndarray], retained: np.ndarray) -> np.ndarray:
    """Each layer's largest deviation over the retained readings; zero is a dead layer."""
    return np.array([a[retained].std(axis=0).max(initial=0.0) for a in activations])


def _check_readings(activations: list[np.ndarray], partition: Partition) -> None:
    count = len(partition.retained)
    if any(len(layer) != count for layer in activations):
        raise UserError(
            f"the partition is of {count} readings, but the network shows {len(activations[0])}"
        )
    if not partition.retained.any():
        raise UserError("the partition retains no reading, so there is nothing to prune towards")


def _layers(schedule: Schedule, count: int) -> tuple[int, ...]:
    chosen = range(count) if schedule.layers is None else schedule.layers
    layers = tuple(dict.fromkeys(chosen))
    wrong = [layer for layer in layers if not 0 <= layer < count]
    if wrong:
        raise UserError(f"there is no prunable layer {wrong[0]}; there are {count}, from 0")
    return layers
