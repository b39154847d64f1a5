"""Pruning of a network of plain NumPy arrays: counts, order, folding, guards, the record."""

from __future__ import annotations

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.unlearning import Prunable, Schedule, prune

# The printed schedule with nothing beside it.
PLAIN = {"fold": False, "constants": False, "guard": False, "least": 0}


def ranking(*scores):
    """A criterion that ranks each layer's neurons as told, whatever they do."""
    told = [np.asarray(score, float) for score in scores]

    def ranked(view):
        return next(score for score in told if len(score) == view.activations.shape[1])

    return ranked


def change(network, smaller) -> float:
    return float(np.abs(network.predict() - smaller.predict()).max())


def removed_from(pruning, layer: int) -> list[np.ndarray]:
    return [step.removed[step.layers.index(layer)] for step in pruning.steps]


def test_plain_arrays_are_enough(draw):
    assert isinstance(draw(), Prunable)
    assert not isinstance(object(), Prunable)


# -- how many ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "fraction", "steps", "left"),
    [(100, 0.05, 20, 36), (100, 0.05, 1, 95), (40, 0.3, 4, 10), (7, 0.05, 20, 3), (9, 0.0, 5, 9)],
)
def test_the_share_is_exact_after_every_step(draw, parted, width, fraction, steps, left):
    schedule = Schedule(fraction, steps, **PLAIN)
    smaller, pruning = prune(draw(widths=(width, width)), parted, schedule)
    assert pruning.before == (width, width) and pruning.after == (left, left)
    assert [int(alive.sum()) for alive in smaller.alive()] == [left, left]
    counts = width - np.cumsum([len(neurons) for neurons in removed_from(pruning, 0)])
    expected = [round(width * (1 - fraction) ** number) for number in range(1, steps + 1)]
    assert counts.tolist() == expected
    assert pruning.neurons_left == 2 * left


def test_at_once_is_as_sparse_in_one_step(draw, parted):
    slowly = Schedule(**PLAIN)
    at_once = slowly.at_once()
    assert at_once.steps == 1 and at_once.share_left == pytest.approx(slowly.share_left)
    network = draw()
    _, many = prune(network, parted, slowly)
    _, one = prune(network, parted, at_once)
    assert one.after == many.after == (36, 36) and len(one.steps) == 1 and len(many.steps) == 20
    # Looking again after each step leads to another choice.
    gone = np.sort(np.concatenate(removed_from(many, 1)))
    assert not np.array_equal(gone, np.sort(removed_from(one, 1)[0]))


def test_chosen_layers_alone_are_pruned(draw, parted):
    network = draw(widths=(20, 30, 40))
    smaller, pruning = prune(network, parted, Schedule(layers=(2, 0, 2), **PLAIN))
    assert pruning.after == (7, 30, 14)
    assert all(step.layers == (2, 0) for step in pruning.steps)
    np.testing.assert_array_equal(smaller.biases[1], network.biases[1])


def test_a_layer_that_is_not_there_is_told(draw, parted):
    for layer in (2, -1):
        with pytest.raises(UserError, match=f"no prunable layer {layer}; there are 2"):
            prune(draw(), parted, Schedule(layers=(0, layer)))


def test_some_neurons_always_stay(draw, parted):
    schedule = Schedule(0.5, 12, fold=False, constants=False, guard=False, least=3)
    assert prune(draw(widths=(20, 2)), parted, schedule)[1].after == (3, 2)


def test_no_step_prunes_nothing(draw, parted):
    network = draw()
    smaller, pruning = prune(network, parted, Schedule(steps=0))
    assert smaller is network and pruning.steps == () and pruning.after == pruning.before


# -- which ------------------------------------------------------------------------------------


def test_the_highest_scores_go_first_and_ties_go_by_place(draw, parted):
    network = draw(widths=(8, 6))
    schedule = Schedule(0.25, 2, criterion=ranking([1, 9, 3, 9, 0, 9, 2, 9], [5] * 6), **PLAIN)
    _, pruning = prune(network, parted, schedule)
    # Of 8, to 6 and round(4.5) = 4; of 6, to round(4.5) = 4 and round(3.375) = 3.
    assert [n.tolist() for n in removed_from(pruning, 0)] == [[1, 3], [5, 7]]
    assert [n.tolist() for n in removed_from(pruning, 1)] == [[0, 1], [2]]


def test_importance_is_computed_anew_from_what_is_left(draw, parted):
    seen = []

    def watching(view):
        seen.append(view.activations.copy())
        return np.arange(view.activations.shape[1], dtype=float)

    network = draw(widths=(10, 12))
    _, pruning = prune(network, parted, Schedule(0.2, 2, criterion=watching, **PLAIN))
    # In the first step every layer is judged in the whole network, not in one half pruned.
    for found, whole in zip(seen[:2], network.activations(), strict=True):
        np.testing.assert_array_equal(found, whole)
    once = network
    for layer in (0, 1):
        neurons = pruning.steps[0].removed[layer]
        once = once.remove(layer, neurons, np.zeros(len(network.masks[layer])))
    for found, left in zip(seen[2:], once.activations(), strict=True):
        np.testing.assert_array_equal(found, left)
    assert (seen[3] != seen[1]).any()


def test_the_removed_never_come_back(draw, parted):
    network = draw(widths=(30, 30))
    smaller, pruning = prune(network, parted, Schedule(0.1, 15, criterion="random"))
    for layer in (0, 1):
        gone = np.concatenate(removed_from(pruning, layer))
        assert len(set(gone.tolist())) == len(gone) == 30 - pruning.after[layer]
        assert not smaller.activations()[layer][:, gone].any()
        np.testing.assert_array_equal(np.flatnonzero(~smaller.alive()[layer]), np.sort(gone))
        # Scores are told of the living only.
        dead = np.zeros(30, bool)
        for step in pruning.steps:
            np.testing.assert_array_equal(np.isnan(step.scores[layer]), dead)
            dead[step.removed[layer]] = True


def test_chance_follows_the_seed_and_differs_between_layers_and_steps(draw, parted):
    network, schedule = draw(widths=(50, 50)), Schedule(0.1, 3, criterion="random", **PLAIN)
    one, same, other = (prune(network, parted, schedule, seed)[1] for seed in (0, 0, 1))
    sets = lambda p: [n.tolist() for step in p.steps for n in step.removed]  # noqa: E731
    assert sets(one) == sets(same) and sets(one) != sets(other)
    first = one.steps[0]
    assert first.removed[0].tolist() != first.removed[1].tolist()
    assert np.nanmax(np.abs(first.scores[0] - one.steps[1].scores[0])) > 0


def test_epsilon_is_a_thousandth_of_the_typical_variance_unless_told(draw, parted):
    seen = []

    def watching(view):
        seen.append((view.epsilon, np.median(view.activations.var(axis=0))))
        return np.zeros(view.activations.shape[1])

    network = draw(widths=(11, 9), spread=0.01)
    prune(network, parted, Schedule(0.1, 1, criterion=watching))
    assert len(seen) == 2
    for epsilon, variance in seen:
        assert epsilon == pytest.approx(1e-3 * variance, rel=1e-9) and epsilon < 1e-6
    seen.clear()
    prune(network, parted, Schedule(0.1, 1, criterion=watching, epsilon=0.5))
    assert [epsilon for epsilon, _ in seen] == [0.5, 0.5]


def test_a_criterion_sees_weights_partition_and_norms(draw, parted):
    network, seen = draw(widths=(6, 5)), []

    def watching(view):
        seen.append(view)
        return np.zeros(view.activations.shape[1])

    prune(network, parted, Schedule(0.2, 1, criterion=watching))
    for layer, view in enumerate(seen):
        np.testing.assert_array_equal(view.retained, parted.retained)
        np.testing.assert_array_equal(view.weight, parted.weight)
        for found, norm in zip((view.incoming, view.outgoing), network.norms(layer), strict=True):
            np.testing.assert_array_equal(found, norm)


def test_a_criterion_of_one_s_own_leaves_its_name(draw, parted):
    def stiffness(view):
        return -view.incoming

    _, pruning = prune(draw(widths=(10, 10)), parted, Schedule(0.3, 1, criterion=stiffness))
    assert pruning.criterion == "stiffness"
    least = np.argsort(draw(widths=(10, 10)).norms(0)[0])[:3]
    np.testing.assert_array_equal(pruning.steps[0].removed[0], np.sort(least))
    assert prune(draw(), parted, Schedule(steps=1))[1].criterion == "bias"


@pytest.mark.parametrize("wrong", [lambda v: np.zeros(3), lambda v: np.full(100, np.nan)])
def test_a_criterion_that_gives_no_number_for_each_neuron_is_told(draw, parted, wrong):
    with pytest.raises(UserError, match="one number for each of the 100 neurons of layer 0"):
        prune(draw(), parted, Schedule(criterion=wrong))


# -- constant neurons -------------------------------------------------------------------------


@pytest.mark.parametrize("fold", [True, False])
def test_a_constant_neuron_goes_first_and_leaves_no_trace(draw, parted, fold):
    network = draw(widths=(10, 10)).with_row(0, 4, 0.0, 1.5)
    least = ranking(np.where(np.arange(10) == 4, -1.0, 1.0))
    schedule = Schedule(0.1, 1, criterion=least, fold=fold, layers=(0,))
    smaller, pruning = prune(network, parted, schedule)
    assert removed_from(pruning, 0)[0].tolist() == [4] and pruning.constant == (1, 0)
    assert change(network, smaller) < 1e-13
    # Left to its score, it would have stayed and another gone.
    kept, other = prune(network, parted, Schedule(0.1, 1, criterion=least, constants=False))
    assert 4 not in removed_from(other, 0)[0] and other.constant == (0, 0)
    assert change(network, kept) > 1e-4


def test_constants_count_towards_the_quota_and_never_beyond(draw, parted):
    network = draw(widths=(20, 20))
    for neuron in range(6):
        network = network.with_row(1, neuron, 0.0, 0.3 * neuron - 1)
    smaller, pruning = prune(network, parted, Schedule(0.2, 1, layers=(1,)))
    assert pruning.after == (20, 16) and pruning.constant == (0, 4)
    assert removed_from(pruning, 1)[0].max() < 6
    assert change(network, smaller) < 1e-13
    # The next step takes the other two, and then one that varies.
    smaller, pruning = prune(network, parted, Schedule(0.2, 2, layers=(1,)))
    assert pruning.constant == (0, 6) and set(range(6)) < set(np.flatnonzero(~smaller.masks[1]))
    assert change(network, smaller) > 1e-6


def test_a_neuron_that_varies_only_where_readings_are_suspect_is_not_constant(draw, parted, line):
    # A step to the right of all retained readings.
    network = draw(widths=(10, 10)).with_row(0, 2, 200.0, -200.0 * 0.6)
    seen = network.activations()[0][:, 2]
    assert np.ptp(seen[parted.retained]) < 1e-9 and np.ptp(seen) > 1
    least = ranking(np.where(np.arange(10) == 2, -1.0, 1.0))
    _, pruning = prune(network, parted, Schedule(0.1, 1, criterion=least))
    assert pruning.constant == (0, 0) and 2 not in removed_from(pruning, 0)[0]


# -- folding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_folding_the_mean_spares_the_retained_readings(draw, parted, seed):
    network = draw(widths=(40, 40), seed=seed)
    kept = parted.retained

    def harm(fold: bool) -> float:
        schedule = Schedule(0.3, 1, criterion="random", fold=fold, constants=False, guard=False)
        smaller, pruning = prune(network, parted, schedule, seed)
        assert pruning.folded == fold
        return float(np.sqrt(np.mean((smaller.predict() - network.predict())[kept] ** 2)))

    assert harm(True) < 0.85 * harm(False)


def test_what_is_folded_is_the_mean_over_the_retained(draw, parted):
    network = draw(widths=(10, 10))
    smaller, pruning = prune(network, parted, Schedule(0.2, 1, layers=(1,)))
    gone = removed_from(pruning, 1)[0]
    mean = network.activations()[1][parted.retained].mean(axis=0)
    expected = network.biases[2] + network.weights[2][:, gone] @ mean[gone]
    np.testing.assert_allclose(smaller.biases[2], expected, rtol=1e-12)


# -- the guard --------------------------------------------------------------------------------

# Two neurons carry the signal, eight are nearly still, yet too lively to be constant.
LIVELY = (3, 7)


@pytest.fixture
def fragile(draw):
    network = draw(widths=(10, 10))
    for neuron in range(10):
        if neuron not in LIVELY:
            network = network.with_row(0, neuron, 0.005, 0.1 * neuron)
    return network


def spread(network, partition) -> float:
    return float(network.activations()[0][partition.retained].std(axis=0).max())


def test_the_guard_stops_before_a_layer_dies(fragile, parted):
    # Two of the still ones go first, then both of the lively.
    score = np.zeros(10)
    score[[0, 1]], score[list(LIVELY)] = 9, 5
    options = {"fraction": 0.2, "steps": 4, "criterion": ranking(score), "layers": (0,)}
    smaller, pruning = prune(fragile, parted, Schedule(**options))
    assert pruning.note == "stopped before step 2, after which a layer would carry no signal"
    assert len(pruning.steps) == 1 and pruning.after == (8, 10)
    assert removed_from(pruning, 0)[0].tolist() == [0, 1]
    assert spread(smaller, parted) == spread(fragile, parted)
    # Unguarded, the layer dies.
    dead, unguarded = prune(fragile, parted, Schedule(guard=False, **options))
    assert unguarded.after == (4, 10) and unguarded.note == ""
    assert spread(dead, parted) < 0.02 * spread(fragile, parted)


def test_where_the_first_step_would_kill_nothing_is_removed(fragile, parted):
    smaller, pruning = prune(fragile, parted, Schedule(0.3, 5, criterion="std", layers=(0,)))
    assert smaller is fragile and pruning.steps == () and pruning.constant == (0, 0)
    assert "before step 1" in pruning.note


def test_the_guard_lets_a_healthy_pruning_be(draw, parted):
    _, pruning = prune(draw(), parted, Schedule())
    assert pruning.note == "" and pruning.after == (36, 36)


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fraction": 1.0}, r"must be in \[0, 1\), not 1.0"),
        ({"fraction": -0.1}, "not -0.1"),
        ({"fraction": float("nan")}, "not nan"),
        ({"steps": -1}, "must not be negative"),
        ({"least": -2}, "must not be negative"),
        ({"criterion": "biased"}, "did you mean 'bias'"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(options, words):
    with pytest.raises(UserError, match=words):
        Schedule(**options)


def test_without_a_retained_reading_nothing_can_be_pruned(draw, halves):
    with pytest.raises(UserError, match="retains no reading"):
        prune(draw(), halves(np.zeros(60, bool)), Schedule())


def test_a_partition_of_other_readings_is_refused(draw, halves):
    with pytest.raises(UserError, match="partition is of 7 readings, but the network shows 60"):
        prune(draw(), halves(np.ones(7, bool)), Schedule())


def test_with_one_retained_reading_its_activations_are_the_means(draw, halves):
    network = draw(widths=(10, 10))
    smaller, pruning = prune(network, halves(np.arange(60) == 5), Schedule(0.2, 3))
    assert pruning.after == (5, 5)
    # Folding hands on just what the reading saw, so nothing changes there.
    assert abs(smaller.predict()[5] - network.predict()[5]) < 1e-12
    assert change(network, smaller) > 1e-3
