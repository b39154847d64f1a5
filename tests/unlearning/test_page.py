"""The examples on the page about unlearning run as they stand, with shorter fine-tuning."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import unpinn
from unpinn.training import Adam, Quiet

PAGE = Path(__file__).parents[2] / "docs" / "unlearning.md"
BLOCKS = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_on_unlearning_runs(world, monkeypatch):
    real, asked = unpinn.unlearn, []

    def short(fit, recipe=None):
        recipe = recipe or unpinn.default_recipe()
        asked.append(recipe)
        if recipe.schedule is not None:
            recipe = recipe.changed(steps=6)
        brief = (Adam(epochs=2, rate=1e-2),)
        recipe = replace(recipe.once(), stages=brief, stiffening=None, accept=False)
        return real(fit, recipe, watcher=Quiet())

    monkeypatch.setattr(unpinn, "unlearn", short)
    space = {"unpinn": unpinn, "fit": world.noisy}
    for code in BLOCKS.findall(PAGE.read_text()):
        exec(compile(code, str(PAGE), "exec"), space)
    assert len(asked) == 4 and asked[1].weights == {"equations": 0.1}
    assert asked[2].schedule.criterion is space["worst_reading"]
    assert space["clean"].partition.rule == "three deviations"
    assert space["pruning"].after == (9, 9)
