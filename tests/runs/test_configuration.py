"""The settings of a run: plain, checked at once, and read back the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpinn._errors import UserError
from unpinn.runs import Configuration, check_method, parse_options, pose

settings = st.fixed_dictionaries({
    "problem": st.sampled_from(["heat", "wave", "pinv"]),
    "method": st.sampled_from(["pinn", "ppinn"]),
    "recipe": st.sampled_from(["default", "paper"]),
    "seed": st.integers(0, 2**31),
    "epochs": st.none() | st.integers(1, 10**6),
    "options": st.dictionaries(st.text("abc", min_size=1), st.floats(0.5, 0.9) | st.booleans()),
    "noise": st.fixed_dictionaries(
        {}, optional={"high": st.floats(0.5, 2), "kind": st.just("biased")}
    ),
})  # fmt: skip


@given(settings)
def test_settings_survive_json(chosen):
    asked = Configuration(**chosen)
    assert Configuration.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked


@given(settings, settings)
def test_two_runs_of_other_settings_have_other_names(one, other):
    one, other = Configuration(**one), Configuration(**other)
    assert (one.name == other.name) == (one == other)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"recipe": "defualt"}, "no recipe 'defualt'.*did you mean 'default'"),
        ({"budget": "long"}, "no budget 'long'"),
        ({"preset": "ours"}, "no preset 'ours'"),
        ({"seed": -1}, "a seed must be a whole number of zero or more, not -1"),
        ({"epochs": 0}, "epochs must be 1 or more, not 0"),
        ({"epochs": 5, "budget": "quick"}, "epochs and budget both say how long"),
        ({"noise": {"size": 1}}, "noise has no 'size'"),
        ({"data": "sensors.csv"}, "heat is a benchmark and simulates its readings"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(options, sentence):
    with pytest.raises(UserError, match=sentence):
        Configuration("heat", **options)


def test_options_are_json_or_else_text():
    assert parse_options(["a=1", "b=0.5", "c=true", "d=[1,2]", "e=l=m", "f=null"]) == {
        "a": 1, "b": 0.5, "c": True, "d": [1, 2], "e": "l=m", "f": None,
    }  # fmt: skip
    for setting in ("share", "=3"):
        with pytest.raises(UserError, match="--set takes name=value"):
            parse_options([setting])
    with pytest.raises(UserError, match="'a' twice"):
        parse_options(["a=1", "a=2"])


def test_a_method_is_checked_before_anything_is_trained(asked):
    def posed(method, **options):
        return pose(Configuration(asked.problem, method, options=options, data=asked.data))

    with pytest.raises(UserError, match="has no option 'shere'"):
        check_method(posed("ppinn", shere=0.5))
    with pytest.raises(UserError, match="must be told the true noise of every reading"):
        check_method(posed("oracle"))
    assert check_method(posed("huber")).name == "huber"


def test_a_budget_shortens_the_baseline_and_the_unlearning_alike(asked):
    def epochs(**options):
        found = pose(Configuration(asked.problem, data=asked.data, **options))
        return found.protocol.epochs, sum(stage.length for stage in found.recipe.stages)

    assert epochs() == (40, 20)
    assert epochs(epochs=10) == (10, 5)
    assert epochs(epochs=80) == (80, 40)
