"""What a study can set of an unlearning, and of what kind each setting must be."""

from __future__ import annotations

import pytest

from unpinn import UserError
from unpinn.study import Source, parse_plan
from unpinn.study._kinds import KINDS
from unpinn.study._read_plan import _NAMES
from unpinn.study._unlearning import changed_recipe
from unpinn.training import Adam, Lbfgs
from unpinn.unlearning import ByMixture, ByShare, ByThreshold, Recipe, Schedule, paper_recipe

OF_ANOTHER_KIND = {
    "a number": ('"x"', "true", "[1]", "nan", "inf"),
    "a whole number": ('"x"', "true", "1.5"),
    "true or false": ('"x"', "1", "0.0"),
    "a text": ("1", "true", "[]"),
    "a whole number or a list of them": ('"x"', "1.5", "true", '["a"]'),
    "a table of settings": ("1", '"x"'),
}


def mistake(text: str) -> str:
    head = 'title = "Mine"\n[[table]]\nname = "a"\nproblems = ["heat"]\n'
    with pytest.raises(UserError) as caught:
        parse_plan(Source("mine.toml", head + text))
    return str(caught.value)


def test_every_setting_has_a_kind():
    assert {*KINDS} == {*_NAMES}
    for group, names in _NAMES.items():
        assert {*names} <= {*KINDS[group]}, group


@pytest.mark.parametrize("group", KINDS)
def test_a_value_of_another_kind_is_refused_with_its_line(group):
    for name in _NAMES[group]:
        kind = KINDS[group][name]
        for value in OF_ANOTHER_KIND[kind]:
            told = mistake(f'methods = ["ppinn"]\n\n{group} = {{ {name} = {value} }}')
            assert told.startswith(f"mine.toml, line 7: {name} must be {kind}, not "), told


@pytest.mark.parametrize(
    ("method", "option", "value", "kind"),
    [
        ("bpinn", "samples", '"many"', "a number"),
        ("bpinn", "nuts", "1", "true or false"),
        ("bpinn", "precision", "32", "a text"),
        ("bpinn", "steps", "[1]", "a number"),
        ("dpinn", "rate", "true", "a number"),
    ],
)
def test_an_option_of_another_kind_is_refused_with_its_line(method, option, value, kind):
    told = mistake(f'methods = ["{method}"]\noptions = {{ {option} = {value} }}')
    assert told.startswith(f"mine.toml, line 6: {option} of {method} must be {kind}, not ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('main = "yes"', "main must be true or false, not 'yes'"),
        ("quantities = []", "a table needs a list of quantities"),
        ("budgets = []", "a table needs a list of budgets"),
        ('[[note]]\ntext = "t"\ntables = ["b"]', "there is no table 'b'"),
        ('[[note]]\ntext = "t"\nproblems = ["haet"]', "did you mean 'heat'?"),
        ('[[note]]\ntext = "t"\nmethods = ["ppin"]', "did you mean 'ppinn'?"),
        ('[[note]]\ntext = "t"\nquantities = ["l2er"]', "did you mean 'l2re'?"),
    ],
)
def test_what_says_nothing_is_refused(text, words):
    assert words in mistake(f'methods = ["ppinn"]\n{text}')


def test_notes_are_a_list():
    with pytest.raises(UserError, match=r"line 1: notes are written as \[\[note\]\]"):
        parse_plan(
            Source("mine.toml", 'note = 3\ntitle = "a"\n[[table]]\nname = "a"\n'
                   'problems = ["heat"]\nmethods = ["pinn"]')
        )  # fmt: skip


# -- of an unlearning ----------------------------------------------------------------------

RECIPE = Recipe(
    "mine", ByMixture(), Schedule(steps=4), (Adam(epochs=100), Lbfgs(iterations=50)), rounds=2
)


def test_nothing_changed_is_the_same_recipe():
    assert changed_recipe(RECIPE, {}) == RECIPE
    assert changed_recipe(paper_recipe(True), {}) == paper_recipe(True)


def test_the_partition_can_be_by_another_rule():
    assert changed_recipe(RECIPE, {"share": 0.3}).rule == ByShare(0.3)
    assert changed_recipe(RECIPE, {"threshold": 2.0}).rule == ByThreshold(2.0)
    assert changed_recipe(RECIPE, {"soft": False}).rule == ByMixture(soft=False)
    with pytest.raises(UserError, match="two different rules"):
        changed_recipe(RECIPE, {"share": 0.3, "threshold": 2.0})


def test_what_is_removed_can_be_changed():
    schedule = changed_recipe(RECIPE, {"layers": 2, "criterion": "std", "fold": False}).schedule
    assert (schedule.layers, schedule.criterion, schedule.fold) == ((0, 1), "std", False)
    assert changed_recipe(RECIPE, {"layers": [1, 3]}).schedule.layers == (1, 3)
    at_once = changed_recipe(RECIPE, {"single": True}).schedule
    assert at_once.steps == 1
    left = (1 - at_once.fraction), (1 - RECIPE.schedule.fraction) ** RECIPE.schedule.steps
    assert left[0] == pytest.approx(left[1])
    assert changed_recipe(RECIPE, {"prune": False}).schedule is None
    with pytest.raises(UserError, match="nothing is pruned, so 'steps' cannot be set"):
        changed_recipe(RECIPE, {"prune": False, "steps": 3})


def test_fine_tuning_can_be_longer_shorter_or_have_a_stage_less():
    changed = changed_recipe(RECIPE, {"adam": 30, "lbfgs": 0})
    assert [(type(s), s.length) for s in changed.stages] == [(Adam, 30)]
    assert [s.length for s in changed_recipe(RECIPE, {"lbfgs": 80}).stages] == [100, 80]
    with pytest.raises(UserError, match="nothing would be left of the fine-tuning"):
        changed_recipe(RECIPE, {"adam": 0, "lbfgs": 0})


def test_the_equations_weight_can_be_fixed():
    changed = changed_recipe(RECIPE, {"physics": 1})
    assert changed.weights["equations"] == 1.0 and changed.tolerance is None


def test_a_setting_that_no_unlearning_has_is_refused():
    with pytest.raises(UserError, match="an unlearning has no 'shar'"):
        changed_recipe(RECIPE, {"shar": 0.5})
