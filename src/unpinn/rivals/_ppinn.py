"""ppinn: the paper's method, in the recommended variant, in the printed one, and as a control."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from unpinn.rivals import _checks as checks
from unpinn.rivals._method import Method, Task, register
from unpinn.training import Fit, Lbfgs
from unpinn.unlearning import Recipe, default_recipe, paper_recipe, unlearn

# The paper's fine-tuning has a tenth of the baseline's epochs, in both of its stages.
_PAPER_SHARE = 0.1


def asked_recipe(task: Task) -> Recipe:
    """The task's recipe, or the one that needs no number."""
    return task.recipe or default_recipe()


def printed_recipe(task: Task) -> Recipe:
    """The paper's recipe with the task's options; it ends as the baseline's protocol does."""
    share = checks.share(task, "ppinn-paper", "share", one=True)
    physics = checks.positive(task, "ppinn-paper", "physics")
    recipe = paper_recipe(isinstance(task.protocol.stages[-1], Lbfgs), share, physics)
    if task.options["epochs"] is not None:
        epochs = checks.whole(task, "ppinn-paper", "epochs", 1)
        return recipe.scaled_to(epochs / recipe.stages[0].length)
    spent = [
        sum(old.length for old in task.protocol.stages if isinstance(old, type(stage)))
        for stage in recipe.stages
    ]
    stages = (
        stage.scaled_to(_PAPER_SHARE * epochs / stage.length)
        for stage, epochs in zip(recipe.stages, spent, strict=True)
    )
    return replace(recipe, stages=tuple(stages))


def _unlearning(recipe_of: Callable[[Task], Recipe]) -> Callable[[Task], Fit]:
    """A method that trains the baseline and then unlearns by some recipe."""

    def run(task: Task) -> Fit:
        recipe = recipe_of(task)
        baseline = task.trained_baseline()
        return unlearn(baseline, recipe, directory=task.place("unlearn"), watcher=task.watcher)

    return run


PPINN = register(
    Method(
        "ppinn",
        "prune the neurons of suspect readings and fine-tune on the others",
        _unlearning(asked_recipe),
        needs_baseline=True,
    )
)

PPINN_PAPER = register(
    Method(
        "ppinn-paper",
        "the same with every setting as the paper prints it",
        _unlearning(printed_recipe),
        options={"share": 0.5, "physics": 0.005, "epochs": None},
        needs_baseline=True,
    )
)

PPINN_RANDOM = register(
    Method(
        "ppinn-random",
        "control: as ppinn, but the neurons are chosen by chance",
        _unlearning(lambda task: asked_recipe(task).changed(criterion="random")),
        needs_baseline=True,
    )
)
