"""pinn: the plain network, trained on all readings as if they were equally good."""

from unpinn.rivals._method import Method, Task, register
from unpinn.training import Fit


def _run(task: Task) -> Fit:
    return task.trained_baseline()


PINN = register(Method("pinn", "the plain network, least squares on all readings", _run))
