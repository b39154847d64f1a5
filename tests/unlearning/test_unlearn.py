"""Algorithm 1 as a whole: its record, what it may not look at, when it ends, what it refuses."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.problem import observe
from unpinn.training import Adam, Lbfgs, Quiet, Status, reading_units, train
from unpinn.unlearning import (
    ByMixture,
    ByShare,
    Recipe,
    Schedule,
    default_recipe,
    paper_recipe,
    scores_of,
    unlearn,
)
from unpinn.unlearning._tuning import Tuning
from unpinn.unlearning._unlearn import find_partition

# The cheapest recipe of one round; its program is the one that `short` has compiled.
ONE = (Adam(epochs=2, rate=1e-2),)


def leaves(fit) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(fit.model)]


def same_model(one, other) -> bool:
    pairs = zip(leaves(one), leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def brief(**changes) -> Recipe:
    return Recipe(**{"name": "brief", "rule": ByShare(0.6), "schedule": Schedule(steps=6),
                     "stages": ONE, **changes})  # fmt: skip


# -- the record -------------------------------------------------------------------------------


def test_the_record_holds_partition_pruning_sizes_and_the_fit_before(world):
    found, baseline = world.result("short"), world.noisy
    assert found.before is baseline and found.status.code == "finished"
    assert (found.method, found.recipe, found.seed) == ("ppinn", "short", baseline.seed)
    scores = scores_of(baseline)
    for name in ("misfit", "residual", "score"):
        np.testing.assert_array_equal(getattr(found.partition, name), getattr(scores, name))
    assert found.partition.retained.sum() == 36 and len(found.suspects) == 24
    assert found.pruning.before == (12, 12) and found.pruning.after == (9, 9)
    assert len(found.pruning.steps) == 6 and found.pruning.criterion == "bias"
    assert found.model.network.widths == (9, 9) and found.neurons_left == 18
    assert found.details["rounds"] == 1 and len(found.history) == 60
    seconds = found.seconds
    assert {"partition", "pruning", "stage1.run"} <= set(seconds)
    parts = seconds["partition"] + seconds["pruning"] + seconds["stage1.run"]
    assert seconds["total"] >= parts
    evidence = found.details["evidence"]
    assert {"gain", "error", "residual_before", "residual_after", "accepts"} <= set(evidence)


def test_the_baseline_is_left_as_it_was(world):
    before = [leaf.copy() for leaf in leaves(world.noisy)]
    world.unlearn(world.noisy, brief())
    assert all(np.array_equal(a, b) for a, b in zip(before, leaves(world.noisy), strict=True))
    assert world.noisy.partition is None and world.noisy.pruning is None


def test_the_same_seed_gives_the_same_bits(world):
    one, same = (world.unlearn(world.noisy, brief()) for _ in range(2))
    assert same_model(one, same)
    np.testing.assert_array_equal(one.history.rows, same.history.rows)
    random = brief(schedule=Schedule(steps=6, criterion="random"))
    one, other = (world.unlearn(fit, random) for fit in (world.noisy, replace(world.noisy, seed=9)))
    assert not same_model(one, other)


def test_fine_tuning_has_its_own_weights_and_the_baseline_s_scales(world):
    found = world.unlearn(world.noisy, brief(weights={"equations": 0.25, "start": 3.0}))
    assert found.details["weights"] == {"data": 1.0, "decay": 0.25, "start": 3.0}
    assert found.details["scales"] == pytest.approx(world.noisy.details["scales"], rel=1e-6)
    assert found.protocol.stages == ONE and found.protocol.name == "brief"


def test_without_pruning_the_network_keeps_its_size(world):
    found = world.unlearn(world.noisy, brief().without_pruning())
    assert found.pruning is None and found.model.network.widths == (12, 12)
    assert found.partition.suspect.sum() == 24


# -- what it may look at ----------------------------------------------------------------------


def with_values(fit, rows, value: float):
    """The same fit, with other values in some of its readings."""
    values = fit.observations.values.copy()
    values[rows] = value
    return replace(fit, observations=replace(fit.observations, values=values))


def test_suspect_readings_have_no_say_in_the_fine_tuning(world):
    found = world.unlearn(world.noisy, brief())
    moved = with_values(world.noisy, found.partition.suspect, 77.0)
    again = world.unlearn(moved, brief(), partition=found.partition)
    assert same_model(found, again)
    moved = with_values(world.noisy, found.partition.retained, 0.5)
    assert not same_model(found, world.unlearn(moved, brief(), partition=found.partition))


def test_soft_weights_reach_the_loss(world):
    hard, soft = (
        world.unlearn(world.noisy, brief(rule=ByMixture(soft=soft))) for soft in (False, True)
    )
    assert soft.partition.weight[soft.partition.suspect].min() > 0
    assert hard.partition.weight[hard.partition.suspect].max() == 0
    # The weights are the mean square's, by hand, of the network before its first epoch.
    for found in (hard, soft):
        weight = found.partition.weight
        model = _pruned_start(world, found)
        misfit = (model.misfits() / _unit(world.noisy))[:, 0]
        expected = float(np.sum(weight * misfit**2) / weight.sum())
        assert found.history["data"][0] == pytest.approx(expected, rel=1e-4)


def _unit(fit) -> float:
    return float(reading_units(fit.model, fit.observations)[0])


def _pruned_start(world, found):
    """The baseline pruned as the record says, not yet fine-tuned."""
    from unpinn.unlearning import NativePrunable, compacted, prune

    network = NativePrunable(world.noisy.model, world.noisy.observations.points)
    smaller, _ = prune(network, found.partition, Schedule(steps=6), world.noisy.seed)
    return replace(world.noisy, model=compacted(smaller.model))


def test_held_out_readings_have_no_say_at_all(world):
    rows = [1, 8, 20, 33, 47]
    fit = world.noisy.with_details(held_out=rows)
    found = world.unlearn(fit, brief(rule=ByMixture()))
    again = world.unlearn(with_values(fit, rows, -50.0), brief(rule=ByMixture()))
    assert same_model(found, again)
    assert (found.partition.weight[rows] == 0).all() and again.partition.suspect[rows].all()
    assert found.details["evidence"]["held_out"] and found.details["held_out"] == rows
    assert not same_model(found, world.unlearn(world.noisy, brief(rule=ByMixture())))


def test_a_partition_by_the_rule_of_the_recipe(world):
    recipe = brief(rule=ByShare(0.3), residual_weight=10.0)
    found = find_partition(world.noisy, recipe)
    scores = scores_of(world.noisy, 10.0)
    np.testing.assert_array_equal(found.retained, ByShare(0.3)(scores).retained)
    assert (found.retained != find_partition(world.noisy, brief(rule=ByShare(0.3))).retained).any()


# -- rounds -----------------------------------------------------------------------------------


class Telling:
    """A rule that retains what it is told to, one list after the other, and counts."""

    def __init__(self, halves, *lists):
        self.halves, self.lists, self.asked = halves, lists, 0

    def __call__(self, scores):
        self.asked += 1
        return self.halves(self.lists[min(self.asked, len(self.lists)) - 1])


FIRST, SECOND = np.arange(60) < 40, np.arange(60) < 39


def test_rounds_end_when_the_partition_has_settled(world, halves):
    rule = Telling(halves, FIRST)
    found = world.unlearn(world.noisy, brief(rule=rule, rounds=5))
    assert rule.asked == 2 and found.details["rounds"] == 1 and len(found.history) == 2
    rule = Telling(halves, FIRST, SECOND, SECOND)
    found = world.unlearn(world.noisy, brief(rule=rule, rounds=5))
    assert rule.asked == 3 and found.details["rounds"] == 2
    np.testing.assert_array_equal(found.partition.retained, SECOND)


def test_rounds_end_in_the_end_and_the_network_is_pruned_once(world, halves):
    rule = Telling(halves, FIRST, SECOND, FIRST, SECOND)
    later = (Adam(epochs=3, rate=1e-2),)
    found = world.unlearn(world.noisy, brief(rule=rule, rounds=3, later=later))
    assert rule.asked == 3 and found.details["rounds"] == 3
    assert found.pruning.before == (12, 12) and found.pruning.after == (9, 9)
    # All rounds are in the history, the first by its own stages and the others by theirs.
    assert found.history.stages == (("adam", 0), ("adam", 2), ("adam", 5))
    assert len(found.history) == 8 and found.before is world.noisy
    assert found.seconds["total"] > found.seconds["stage1.run"]


def test_without_later_stages_every_round_is_like_the_first(world, halves):
    rule = Telling(halves, FIRST, SECOND)
    found = world.unlearn(world.noisy, brief(rule=rule, rounds=2))
    assert found.history.stages == (("adam", 0), ("adam", 2))


def test_a_partition_that_is_given_is_used_and_all_rounds_are_one(world, halves):
    rule = Telling(halves, FIRST)
    given = halves(SECOND)
    found = world.unlearn(world.noisy, brief(rule=rule, rounds=4), partition=given)
    assert rule.asked == 0 and found.details["rounds"] == 1 and len(found.history) == 4 * 2
    np.testing.assert_array_equal(found.partition.retained, SECOND)
    held = world.noisy.with_details(held_out=[0, 1])
    found = world.unlearn(held, brief(), partition=given)
    assert found.partition.weight[:3].tolist() == [0.0, 0.0, 1.0]


# -- evidence ---------------------------------------------------------------------------------

# Pruned to almost nothing and hardly tuned: no user would want it.
HARM = {"schedule": Schedule(0.9, 1, guard=False), "stages": (Adam(epochs=1, rate=1e-4),)}


# One step so wide that whatever network makes it is lost.
RUIN = {**HARM, "stages": (Adam(epochs=1, rate=2.0),)}


def test_neurons_that_fine_tuning_alone_does_better_with_stay(world):
    found = world.unlearn(world.noisy, brief(accept=True, **HARM))
    assert found.status.code == "finished" and found.model.network.widths == (12, 12)
    assert "removing neurons made the readings agree less well" in found.status.reason
    alone, pruned = found.details["tried"]
    assert alone["neurons"] == [12, 12] and alone["accepted"]
    assert pruned["neurons"] == [2, 2] and not pruned["accepted"]
    assert found.pruning is None and found.details["evidence"]["accepts"] is True
    assert found.unknowns == alone["unknowns"] != pruned["unknowns"]
    spent = alone["seconds"] + pruned["seconds"]
    parts = found.seconds["partition"] + found.seconds["pruning"]
    assert found.seconds["total"] == pytest.approx(spent + parts)


def test_neurons_that_are_not_missed_are_removed(world):
    longer = (Lbfgs(iterations=60),)
    gentle = brief(accept=True, schedule=Schedule(0.1, 1), stages=longer)
    found = world.unlearn(world.noisy, gentle)
    assert "removing neurons" not in found.status.reason
    alone, pruned = found.details["tried"]
    assert alone["accepted"] and pruned["accepted"] and found.unknowns == pruned["unknowns"]
    assert list(found.model.network.alive) == pruned["neurons"] < alone["neurons"]


def test_what_is_tried_is_no_pruning_then_all_of_it_then_less(world):
    half_way = brief(accept=True, schedule=Schedule(steps=10))
    assert [a.schedule and a.schedule.steps for a in half_way.attempts()] == [None, 10, 3]
    single = brief(accept=True, schedule=Schedule(steps=1))
    assert [a.schedule and a.schedule.steps for a in single.attempts()] == [None, 1]
    assert list(brief(schedule=Schedule()).attempts()) == [brief(schedule=Schedule())]
    unpruned = brief(accept=True, schedule=None)
    assert list(unpruned.attempts()) == [unpruned]


def test_a_result_that_is_worse_by_the_evidence_gives_way_to_the_baseline(world):
    found = world.unlearn(world.noisy, brief(accept=True, **RUIN))
    assert found.status.code == "kept" and found.status.good
    assert "agree less well, so the baseline was kept" in found.status.reason
    assert same_model(found, world.noisy) and found.unknowns == world.noisy.unknowns
    assert found.pruning is None and found.before is world.noisy and found.recipe == "brief"
    # The suspects are those that the baseline showed.
    np.testing.assert_array_equal(
        found.partition.retained, find_partition(world.noisy, brief()).retained
    )
    assert found.details["evidence"]["accepts"] is False
    alone, pruned = found.details["tried"]
    assert pruned["neurons"] == [2, 2] and pruned["rounds"] == 1
    assert alone["neurons"] == [12, 12]
    assert pruned["unknowns"]["k"] != found.unknowns["k"]
    assert found.seconds == {"total": alone["seconds"] + pruned["seconds"]}


def test_without_the_accept_rule_the_harm_stands_and_is_told(world):
    found = world.unlearn(world.noisy, brief(**HARM))
    assert found.status.code == "finished" and found.model.network.widths == (2, 2)
    assert found.details["evidence"]["accepts"] is False


def test_the_evidence_of_a_good_result_is_kept_with_it(world):
    found = world.result("automatic")
    assert found.status.code == "finished" and found.details["evidence"]["accepts"] is True
    assert found.details["evidence"]["gain"] > 0


def test_of_clean_readings_nothing_is_forgotten_and_nothing_trained(world):
    moments: list[object] = []
    found = unlearn(world.clean, world.automatic, watcher=moments.append)
    assert moments == [] and same_model(found, world.clean)
    assert found.status.code == "kept"
    assert "nothing to forget, so the baseline was kept" in found.status.reason
    assert found.partition.retained.all() and len(found.suspects) == 0
    assert found.partition.noise.components == 1 and found.partition.noise.low < 0.03
    assert found.pruning is None and found.details["evidence"] is None


def test_a_partition_that_is_given_is_obeyed_even_if_it_forgets_nothing(world, halves):
    everything = halves(np.ones(60, bool))
    found = world.unlearn(world.clean, brief(accept=True), partition=everything)
    assert "rounds" in found.details or found.details["tried"]


def test_bad_readings_are_found_and_the_unknown_is_not_harmed(world):
    found, bad = world.result("automatic"), world.noise > 0.1
    assert (found.partition.suspect & ~bad).sum() == 0
    assert (found.partition.suspect & bad).sum() >= 0.7 * bad.sum()
    assert abs(found.unknowns["k"] - 0.7) < 0.05


# -- the equations' weight --------------------------------------------------------------------


def physics(fit, partition, recipe, stiffness=1.0):
    return Tuning(fit, recipe, None, None, "ppinn")._physics(partition, stiffness)


def test_the_equations_weigh_what_the_noise_calls_for(world):
    found = world.result("automatic")
    relative = found.partition.noise.low / _unit(world.noisy)
    expected = (relative / world.automatic.tolerance) ** 2
    assert found.details["weights"]["decay"] == pytest.approx(expected, rel=1e-5)
    for tolerance, weight in ((1e-6, 1.0), (1e6, 1e-4)):
        recipe = replace(world.automatic, tolerance=tolerance)
        assert physics(world.noisy, found.partition, recipe) == {"equations": weight}


def test_without_tolerance_or_noise_the_recipe_s_weights_stand(world):
    partition = world.result("automatic").partition
    assert physics(world.noisy, partition, world.short) == {}
    blind = replace(partition, noise=None)
    assert physics(world.noisy, blind, world.automatic) == {}


# -- an unknown at its bound ------------------------------------------------------------------


def test_a_bound_that_the_baseline_ran_into_is_not_told_of_the_result(world):
    found = world.unlearn(world.noisy.with_details(at_bound=["k"], kept="yes"), brief())
    assert "at_bound" not in found.details and found.details["kept"] == "yes"


# -- what is refused --------------------------------------------------------------------------


def forward(world):
    protocol = replace(world.noisy.protocol, stages=ONE)
    return train(world.problem, None, protocol, watcher=Quiet())


MISTAKES = {
    "no readings": (lambda w, h: (replace(w.noisy, observations=None), {}), "has no readings"),
    "an ensemble": (
        lambda w, h: (replace(w.noisy, members=w.noisy.model, method="ensemble"), {}),
        "this fit, by ensemble, has many models",
    ),
    "a failed fit": (
        lambda w, h: (replace(w.noisy, status=Status("failed", "no sample was drawn")), {}),
        r"this fit failed \(no sample was drawn\)",
    ),
    "another partition": (
        lambda w, h: (w.noisy, {"partition": h(np.ones(5, bool))}),
        "is of 5 readings, but the fit has 60",
    ),
    "an empty partition": (
        lambda w, h: (w.noisy, {"partition": h(np.zeros(60, bool))}),
        "retains no reading",
    ),
    "a partition of held-out readings": (
        lambda w, h: (
            w.noisy.with_details(held_out=[0]),
            {"partition": h(np.arange(60) == 0)},
        ),
        "retains no reading",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence(world, halves, name):
    make, words = MISTAKES[name]
    fit, options = make(world, halves)
    with pytest.raises(UserError, match=words) as caught:
        world.unlearn(fit, brief(), **options)
    assert "\n" not in str(caught.value)


def test_a_rule_that_retains_nothing_is_told_before_anything_is_trained(world, halves):
    rule = Telling(halves, np.zeros(60, bool))
    for recipe in (brief(rule=rule), brief(rule=rule, schedule=None)):
        with pytest.raises(UserError, match="no reading"):
            world.unlearn(world.noisy, recipe)


def test_a_layer_that_is_not_there_is_told(world):
    with pytest.raises(UserError, match="there is no prunable layer 2"):
        world.unlearn(world.noisy, brief(schedule=Schedule(layers=(2,))))


def test_readings_of_one_kind_of_a_fit_that_was_never_trained_are_judged_too(world):
    # Without a training the misfits are large, yet of one kind; nothing may be made up of them.
    points = world.noisy.observations.points
    observations = observe(world.problem, points, np.full(60, 3.0))
    found = find_partition(replace(world.noisy, observations=observations), world.automatic)
    assert np.isfinite(found.weight).all() and found.retained.any()


# -- the recipes as they come -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("assimilation", [False, True])
def test_the_printed_recipe_runs_as_printed(world, assimilation):
    found = world.unlearn(world.noisy, paper_recipe(assimilation).scaled_to(0.05))
    assert found.recipe == "paper" and found.pruning.after == (4, 4)
    assert [kind for kind, _ in found.history.stages] == ["adam", "lbfgs"][: 1 + assimilation]
    assert found.details["weights"]["decay"] == 0.005
    assert found.partition.retained.sum() == 30


@pytest.mark.slow
def test_the_default_recipe_is_what_unlearn_does_unasked(world):
    found = unlearn(world.noisy, watcher=Quiet())
    assert found.recipe == default_recipe().name == "default"
    assert found.status.code in ("finished", "kept") and found.partition.noise.components == 2
    assert abs(found.unknowns["k"] - 0.7) < 0.05
