"""Recipes are plain configuration: the printed one, the default one, and changes to them."""

from __future__ import annotations

import pytest

from unpinn._errors import UserError
from unpinn.training import Adam, Lbfgs
from unpinn.unlearning import RECIPES, ByMixture, ByShare, Recipe, default_recipe, paper_recipe


def test_the_paper_s_recipe_is_as_printed():
    recipe = paper_recipe(assimilation=False)
    assert recipe.rule == ByShare(0.5) and recipe.residual_weight == 0.001
    assert recipe.stages == (Adam(epochs=2_000, rate=1e-3),) and recipe.later is None
    assert recipe.weights == {"equations": 0.005} and recipe.tolerance is None
    assert recipe.rounds == 1 and not recipe.accept
    schedule = recipe.schedule
    assert (schedule.fraction, schedule.steps, schedule.layers) == (0.05, 20, None)
    assert (schedule.criterion, schedule.epsilon) == ("bias", 1e-8)
    # Nothing that the paper does not have.
    assert not (schedule.fold or schedule.constants or schedule.guard) and schedule.least == 0


def test_assimilation_ends_with_quasi_newton():
    assert paper_recipe(True).stages[1:] == (Lbfgs(iterations=500),)


def test_share_and_physics_of_the_paper_can_be_told():
    recipe = paper_recipe(False, share=0.3, physics=1.0)
    assert recipe.rule == ByShare(0.3) and recipe.weights == {"equations": 1.0}


def test_the_default_needs_no_number():
    recipe = default_recipe()
    assert recipe.rule == ByMixture() and recipe.tolerance and not recipe.weights
    assert recipe.accept and recipe.rounds > 1
    schedule = recipe.schedule
    assert schedule.fold and schedule.constants and schedule.guard and schedule.epsilon is None
    assert schedule.share_left == pytest.approx(0.95**20)


def test_recipes_have_names():
    assert set(RECIPES) == {"paper", "default"}
    assert RECIPES["default"]() == default_recipe()
    assert all(RECIPES[name](*args).name == name for name, args in
               (("paper", (True,)), ("default", ())))  # fmt: skip


def test_a_budget_shortens_every_round():
    recipe = default_recipe().scaled_to(0.1)
    assert [stage.length for stage in recipe.stages] == [60, 30]
    assert [stage.length for stage in recipe.later] == [30]
    assert paper_recipe(False).scaled_to(0.01).later is None


def test_changes_leave_the_rest_alone():
    recipe = default_recipe()
    assert recipe.once().rounds == 1 and recipe.once().rule == recipe.rule
    bare = recipe.without_pruning()
    assert bare.schedule is None and bare.stages == recipe.stages and "unpruned" in bare.name
    changed = recipe.changed(criterion="random", steps=3)
    assert (changed.schedule.criterion, changed.schedule.steps) == ("random", 3)
    assert changed.schedule.fraction == recipe.schedule.fraction


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Recipe("r", ByShare(0.5), None, (Adam(),), rounds=0), "one round or more, not 0"),
        (lambda: Recipe("r", ByShare(0.5), None, (Adam(),), tolerance=0.0), "above zero, not 0"),
        (lambda: Recipe("r", ByShare(0.5), None, (Adam(),), tolerance=float("nan")), "not nan"),
        (lambda: default_recipe().without_pruning().changed(steps=1), "prunes nothing"),
        (lambda: default_recipe().changed(criterion="bais"), "did you mean 'bias'"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused(make, words):
    with pytest.raises(UserError, match=words):
        make()
