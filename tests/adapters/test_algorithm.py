"""What is tried in what order, what is kept of it, and how long it goes on: on a scripted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from unpinn.adapters import Snapshot
from unpinn.adapters._algorithm import run_algorithm
from unpinn.adapters._comparison import compare_snapshots
from unpinn.adapters._subject import Subject, takes_stiffness
from unpinn.training import Adam, Status
from unpinn.unlearning import ByShare, Recipe, Schedule

COUNT, NEURONS = 60, 20
SHAPE = np.random.default_rng(0).standard_normal((COUNT, 1))
RECIPE = Recipe(
    "scripted", ByShare(0.5), Schedule(fraction=0.2, steps=4, least=0), (Adam(epochs=2),),
    (Adam(epochs=1),), tolerance=0.1, stiffening=5.0, accept=True,
)  # fmt: skip
FLAT = replace(RECIPE, stiffening=None)


@dataclass(frozen=True)
class State:
    """How large the misfits are, how many neurons are left, how often it was tuned."""

    error: float
    neurons: int = NEURONS
    tunings: int = 0
    residual: float = 0.01


@dataclass(frozen=True)
class Layer:
    """One hidden layer of which the first neurons are removed first."""

    left: int = NEURONS

    def activations(self):
        return [np.random.default_rng(1).standard_normal((COUNT, NEURONS))]

    def alive(self):
        return [np.arange(NEURONS) < self.left]

    def norms(self, layer):
        return np.arange(NEURONS, dtype=float), np.ones(NEURONS)

    def remove(self, layer, neurons, constants):
        return Layer(self.left - len(neurons))


@dataclass(eq=False)
class Scripted:
    """A model that becomes by fine-tuning what a script says, from its state and the stiffness."""

    script: Callable[[State, float], State]
    heeds: bool = True
    state: State = field(default_factory=lambda: State(1.0))
    told: list[tuple] = field(default_factory=list)
    points: np.ndarray = field(default_factory=lambda: np.arange(COUNT, dtype=float)[:, None])
    values: np.ndarray = field(default_factory=lambda: np.zeros((COUNT, 1)))

    def look(self):
        misfits = self.state.error * SHAPE
        unknowns = {"k": self.state.error}
        return Snapshot(misfits, np.zeros((COUNT, 1)), self.state.residual, unknowns)

    def prunable(self, retained):
        return Layer(self.state.neurons)

    def layer_names(self):
        return ("layer",)

    def adopt(self, smaller):
        self.state = replace(self.state, neurons=smaller.left)
        return "compacted layer"

    def tune(self, partition, recipe, later, stiffness):
        self.told.append((self.state.neurons, later, stiffness))
        self.state = self.script(self.state, stiffness)
        self.state = replace(self.state, tunings=self.state.tunings + 1)
        return Status("finished", "as scripted")

    def stiffens(self):
        return self.heeds

    def keep(self):
        return self.state

    def bring_back(self, kept):
        self.state = kept

    def restore(self):
        self.state = State(1.0)

    def module(self):
        return self.state


def run(script, recipe=FLAT, **options):
    subject = Scripted(script, **options)
    assert isinstance(subject, Subject)
    result = run_algorithm(subject, recipe, untrained=True)
    # Whatever is told, the model is left at what is told of.
    assert result.module is subject.state
    assert result.unknowns == {"k": subject.state.error}
    return subject, result


def by_width(**errors):
    """A script in which the error after fine-tuning depends on the number of neurons only."""
    table = {int(name[1:]): error for name, error in errors.items()}
    return lambda state, stiffness: replace(state, error=table[state.neurons])


def test_fine_tuning_alone_comes_first_and_pruning_has_to_match_it():
    subject, result = run(by_width(n20=0.5, n8=0.5))
    assert [neurons for neurons, _, _ in subject.told] == [20, 8], "and then it ends"
    assert [attempt["accepted"] for attempt in result.tried] == [True, True]
    assert [attempt["neurons"] for attempt in result.tried] == [None, [8]]
    assert result.pruning.after == (8,) and result.layers == ("layer",)
    assert result.module == State(0.5, 8, 1), "the second attempt starts from the given model"


def test_better_than_the_given_model_is_not_enough():
    """Pruned networks improve on the model, but less than fine-tuning does by itself."""
    subject, result = run(by_width(n20=0.5, n8=0.7, n16=0.7))
    assert [neurons for neurons, _, _ in subject.told] == [20, 8, 16]
    assert [attempt["accepted"] for attempt in result.tried] == [True, False, False]
    assert result.module == State(0.5, 20, 1), "the fine-tuned one is brought back"
    assert result.pruning is None and result.layers == ()
    assert "with fewer neurons readings and residual agreed less well" in result.status.reason
    assert result.status.code == "finished" and result.evidence.gain == pytest.approx(np.log(2))


def test_fewer_neurons_go_where_all_of_them_did_harm():
    _, result = run(by_width(n20=0.5, n8=0.7, n16=0.5))
    assert [attempt["accepted"] for attempt in result.tried] == [True, False, True]
    assert result.pruning.after == (16,) and result.module == State(0.5, 16, 1)
    assert result.describe()["tried"] == result.tried


def test_where_fine_tuning_harms_but_pruning_does_not_the_pruned_one_is_taken():
    _, result = run(by_width(n20=1.5, n8=0.9))
    assert [attempt["accepted"] for attempt in result.tried] == [False, True]
    assert result.module == State(0.9, 8, 1)


@pytest.mark.parametrize(("worse", "told"), [(1.5, "less well"), (np.nan, "diverged")])
def test_where_everything_does_harm_the_model_is_as_it_was_given(worse, told):
    _, result = run(by_width(n20=worse, n8=worse, n16=worse))
    assert len(result.tried) == 3 and not any(attempt["accepted"] for attempt in result.tried)
    assert result.status.code == "kept" and told in result.status.reason
    assert result.module == State(1.0) and result.after is result.before
    assert result.pruning is None and not result.evidence.accepts


def test_a_recipe_that_accepts_anything_is_tried_once():
    subject, result = run(by_width(n8=1.5), replace(FLAT, accept=False))
    assert len(subject.told) == len(result.tried) == 1 and result.module == State(1.5, 8, 1)
    assert result.status.code == "finished"
    # But for what gives no numbers any more.
    assert run(by_width(n8=np.nan), replace(FLAT, accept=False))[1].status.code == "kept"


ONE = replace(RECIPE, schedule=None, accept=False)


def stiffnesses(subject):
    return [stiffness for _, _, stiffness in subject.told]


def test_while_the_likelihood_rises_the_weight_stays_then_it_is_raised():
    """Three tunings that halve the error, then nothing more is to be had."""

    def script(state, stiffness):
        return replace(state, error=state.error / 2) if state.tunings < 3 else state

    subject, result = run(script, ONE)
    # The round; two further ones that gain; one that does not; and the rest of ten with more.
    assert stiffnesses(subject)[:4] == [1, 1, 1, 1]
    np.testing.assert_allclose(stiffnesses(subject)[4:], 5.0 ** np.arange(1, 8))
    assert [later for _, later, _ in subject.told] == [False, *[True] * 10]
    assert result.tried[0]["stiffened"] == 7 and result.tried[0]["rounds"] == 11


def test_equations_that_hold_firmly_are_not_made_to_hold_firmer():
    hold = lambda state, stiffness: replace(state, residual=0.01 / stiffness)  # noqa: E731
    subject, result = run(hold, replace(ONE, firm=1e-3))
    # 0.01 / 5, then 0.01 / 25, which is below.
    assert stiffnesses(subject) == [1, 1, 5, 25] and result.tried[0]["stiffened"] == 2
    assert result.module.residual == pytest.approx(0.01 / 25)


def test_a_step_that_does_harm_is_thrown_away_and_is_the_last():
    harm = lambda state, stiffness: replace(state, error=2.0 if stiffness > 20 else 0.5)  # noqa: E731
    subject, result = run(harm, ONE)
    assert stiffnesses(subject) == [1, 1, 5, 25]
    assert result.module == State(0.5, 20, 3) and result.tried[0]["stiffened"] == 1
    assert result.tried[0]["rounds"] == 3


def test_a_step_that_diverges_is_thrown_away_too():
    lost = lambda state, stiffness: replace(state, error=np.nan if stiffness > 1 else 0.5)  # noqa: E731
    _, result = run(lost, ONE)
    assert result.module == State(0.5, 20, 2) and result.status.code == "finished"


def test_a_weight_that_nobody_heeds_is_not_raised():
    """The steps go on while the likelihood rises, and end where it does not."""

    def script(state, stiffness):
        return replace(state, error=state.error / 2) if state.tunings < 3 else state

    subject, result = run(script, ONE, heeds=False)
    assert stiffnesses(subject) == [1, 1, 1, 1] and result.tried[0]["stiffened"] == 0


@pytest.mark.parametrize("without", [{"stiffening": None}, {"tolerance": None}])
def test_without_stiffening_nothing_follows_the_rounds(without):
    subject, _ = run(by_width(n20=0.5), replace(ONE, **without))
    assert len(subject.told) == 1


def test_every_attempt_is_refined_before_it_is_judged():
    """Pruning needs a second fine-tuning to match; without it, it would be given up."""

    def script(state, stiffness):
        return replace(state, error=0.5 if state.tunings or state.neurons == 20 else 0.7)

    _, result = run(script, replace(RECIPE, firm=1.0))
    assert [attempt["accepted"] for attempt in result.tried] == [True, True]
    assert result.module.neurons == 8


def test_a_partition_of_ones_own_holds_in_every_step():
    subject = Scripted(lambda state, stiffness: replace(state, error=state.error / 2))
    found = ByShare(0.25)(subject.look().scores(0.0))
    result = run_algorithm(subject, replace(ONE, rounds=3), partition=found, untrained=True)
    assert result.partition is found and len(subject.told) == 11, "all rounds are one"


def test_no_numbers_are_worse_than_any():
    given, lost = (Snapshot(error * SHAPE, SHAPE, 0.1, {}) for error in (1.0, np.nan))
    evidence = compare_snapshots(given, lost)
    assert evidence.gain == -np.inf and not evidence.accepts


@pytest.mark.parametrize(
    ("train", "takes"),
    [
        (lambda module, weight: None, False),
        (lambda module, weight, stiffness: None, True),
        (lambda module, *, stiffness=1.0: None, True),
        (lambda module, **options: None, False),
        (type, False),
    ],
)
def test_a_training_of_ones_own_may_take_the_factor(train, takes):
    assert takes_stiffness(train) is takes
