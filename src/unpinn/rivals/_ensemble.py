"""ensemble: networks from different first weights, trained side by side; their mean and spread."""

from __future__ import annotations

from unpinn import precision
from unpinn.network import Model, make_model
from unpinn.rivals import _checks as checks
from unpinn.rivals._method import Method, Task, register
from unpinn.training import Fit
from unpinn.training._together import stacked
from unpinn.training._train_together import train_together

# Far apart, so that no member's first weights are those of the plain network of a nearby seed.
_STRIDE = 1_000_003


def _run(task: Task) -> Fit:
    count = checks.whole(task, "ensemble", "members", 2)
    fit = train_together(
        task.problem, task.observations, task.protocol, drawn_models(task, count), task.seed,
        directory=task.place("ensemble"), watcher=task.watcher,
    )  # fmt: skip
    return fit.with_details(members=count)


def drawn_models(task: Task, count: int) -> Model:
    """Freshly drawn models, stacked; the first is the plain network's own start."""
    with precision.scope("float32"):
        return stacked(
            [
                make_model(
                    task.problem, task.observations, task.protocol.architecture,
                    task.seed + number * _STRIDE, task.protocol.scaled,
                )
                for number in range(count)
            ]
        )  # fmt: skip


ENSEMBLE = register(
    Method(
        "ensemble",
        "networks from different first weights, trained together; their mean",
        _run,
        options={"members": 3},
    )
)
