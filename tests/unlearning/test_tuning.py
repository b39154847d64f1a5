"""The equations' weight is raised step by step, and what does harm is thrown away."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.training import Quiet
from unpinn.unlearning import Evidence, default_recipe, paper_recipe
from unpinn.unlearning import _tuning as tuning
from unpinn.unlearning._unlearn import find_partition


def refined(world, recipe, monkeypatch, *, gain: float = 0.0):
    """What becomes of the automatic result, and the weights that the steps were tried with."""
    tried = []

    def judged(before, after):
        tried.append(after.details["weights"]["decay"])
        return Evidence(gain, 0.1, 0.01, 0.01, False, 60)

    monkeypatch.setattr(tuning, "compare_evidence", judged)
    before = world.result("automatic")
    tune = tuning.Tuning(world.noisy, recipe, None, Quiet(), "ppinn")
    after = tune.refined(before, lambda fit: find_partition(fit, recipe))
    return before, after, tried


def test_every_step_multiplies_the_equations_weight(world, monkeypatch):
    recipe = replace(world.automatic, stiffening=3.0, firm=0.0)
    before, after, tried = refined(world, recipe, monkeypatch)
    # The first goes on with the weight as it is; where that gained nothing, it is raised.
    assert after.details["stiffened"] == len(tried) - 1 == 9
    # The noise is estimated anew at every step, so the ratios are three only about.
    np.testing.assert_allclose(np.diff(np.log(tried)), np.log(3.0), atol=0.5)
    assert after.details["rounds"] == before.details["rounds"] + 10
    assert len(after.history) > len(before.history)


def test_while_the_likelihood_rises_the_weight_stays(world, monkeypatch):
    recipe = replace(world.automatic, stiffening=3.0, firm=0.0)
    _, after, tried = refined(world, recipe, monkeypatch, gain=1.0)
    assert after.details["stiffened"] == 0 and len(tried) == 10
    np.testing.assert_allclose(np.diff(np.log(tried)), 0.0, atol=0.5)


def test_a_step_after_which_the_readings_agree_less_is_thrown_away(world, monkeypatch):
    recipe = replace(world.automatic, stiffening=3.0, firm=0.0)
    before, after, tried = refined(world, recipe, monkeypatch, gain=-1.0)
    assert len(tried) == 1 and after.details["stiffened"] == 0
    pairs = zip(jax.tree.leaves(before.model), jax.tree.leaves(after.model), strict=True)
    assert all(np.array_equal(one, other) for one, other in pairs)
    # Its time was spent all the same.
    assert after.seconds["total"] > before.seconds["total"]


def test_equations_that_hold_firmly_need_no_step(world, monkeypatch):
    recipe = replace(world.automatic, stiffening=3.0, firm=1e9)
    _, after, tried = refined(world, recipe, monkeypatch)
    assert len(tried) == 1 and after.details["stiffened"] == 0


def test_the_paper_s_recipe_keeps_its_weight():
    assert paper_recipe(True).stiffening is None and default_recipe().stiffening == 5.0
    with pytest.raises(UserError, match="stiffening must be a factor above one"):
        replace(default_recipe(), stiffening=1.0)
