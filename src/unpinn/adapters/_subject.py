"""What a framework has to provide: a trained model with its readings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unpinn.adapters._records import Snapshot
from unpinn.training import Partition, Status
from unpinn.unlearning import Prunable, Recipe


@runtime_checkable
class Subject(Protocol):
    """A trained model with its readings, as the algorithm sees it."""

    points: np.ndarray
    values: np.ndarray

    def look(self) -> Snapshot:
        """What the model says now."""
        ...

    def prunable(self, retained: np.ndarray) -> Prunable:
        """The network with its hidden layers found."""
        ...

    def layer_names(self) -> tuple[str, ...]:
        """The names of the layers that can be pruned."""
        ...

    def adopt(self, smaller: Any) -> str:
        """Go on with the pruned network, without its dead neurons; says how far that went."""
        ...

    def tune(self, partition: Partition, recipe: Recipe, later: bool, stiffness: float) -> Status:
        """Fine-tune with each reading counting as the partition says.

        Arguments:
            partition: with the readings' weights and the estimated noise.
            recipe: how.
            later: whether the network has been fine-tuned before.
            stiffness: a factor for the equations' weight.
        """
        ...

    def stiffens(self) -> bool:
        """Whether fine-tuning heeds the factor for the equations' weight."""
        ...

    def keep(self) -> Any:
        """Network, unknowns and whatever else unlearning changes, as they are now."""
        ...

    def bring_back(self, kept: Any) -> None:
        """Go back to what `keep` gave, as often as need be."""
        ...

    def restore(self) -> None:
        """Go back to the model as it was given."""
        ...

    def module(self) -> Any:
        """The network as it is now."""
        ...


def takes_stiffness(train: Callable[..., Any]) -> bool:
    """Whether a training of the user's own has an argument for the factor."""
    try:
        return "stiffness" in inspect.signature(train).parameters
    except (TypeError, ValueError):  # something callable that does not tell
        return False
