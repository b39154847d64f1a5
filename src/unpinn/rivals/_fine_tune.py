"""ft: the baseline trained on with the retained readings, no neuron removed."""

from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._ppinn import asked_recipe
from unpinn.training import Fit
from unpinn.unlearning import unlearn


def _run(task: Task) -> Fit:
    recipe = asked_recipe(task).without_pruning()
    baseline = task.trained_baseline()
    return unlearn(baseline, recipe, directory=task.place("fine-tune"), watcher=task.watcher)


FINE_TUNE = register(
    Method("ft", "fine-tune on the retained readings without pruning", _run, needs_baseline=True)
)
