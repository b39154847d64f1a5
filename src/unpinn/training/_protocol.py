"""How a model is trained: stages in order, units, weights. Plain data, comparable and storable."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unpinn._errors import UserError
from unpinn.network import Architecture
from unpinn.training._stages import Adam, Lbfgs, Stage

_KINDS = {"adam": Adam, "lbfgs": Lbfgs}
BUDGETS = {"quick": 0.02, "short": 0.2, "paper": 1.0}


@dataclass(frozen=True)
class Protocol:
    """A list of stages and what they share.

    Arguments:
        stages: run in order, each from where the last one stopped.
        scaled: whether coordinates, fields and residuals are made non-dimensional.
        weights: of loss terms, by name or group.
        architecture: which network is drawn.
        name: what reports call it.
    """

    stages: tuple[Stage, ...] = (Adam(),)
    scaled: bool = True
    weights: Mapping[str, float] = field(default_factory=dict)
    architecture: Architecture = field(default_factory=Architecture)
    name: str = "custom"

    def __post_init__(self):
        object.__setattr__(self, "stages", tuple(self.stages))
        if not self.stages:
            raise UserError("a protocol needs at least one stage")

    def scaled_to(self, fraction: float) -> Protocol:
        """With a fraction of every stage's length."""
        if not fraction > 0:
            raise UserError(f"a budget must be a fraction above zero, not {fraction}")
        if fraction == 1:
            return self
        return replace(self, stages=tuple(stage.scaled_to(fraction) for stage in self.stages))

    def with_epochs(self, epochs: int) -> Protocol:
        """With so many epochs and iterations in all, shared out among the stages as before.

        >>> [stage.length for stage in paper_assimilation().with_epochs(250).stages]
        [200, 50]
        """
        if epochs < len(self.stages):
            raise UserError(f"{len(self.stages)} stages need an epoch each, not {epochs} in all")
        return self.scaled_to(epochs / self.epochs) if self.epochs else self

    @property
    def epochs(self) -> int:
        """All stages' epochs and iterations."""
        return sum(stage.length for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """As JSON's types."""
        return {
            "name": self.name,
            "scaled": self.scaled,
            "weights": dict(self.weights),
            "architecture": dataclasses.asdict(self.architecture),
            "stages": [{"kind": s.kind, **dataclasses.asdict(s)} for s in self.stages],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Protocol:
        """Read back what `to_dict` gave."""
        try:
            stages = []
            for item in content["stages"]:
                values = {k: tuple(v) if isinstance(v, list) else v for k, v in item.items()}
                stages.append(_KINDS[str(values.pop("kind"))](**values))
            return cls(
                tuple(stages),
                bool(content["scaled"]),
                dict(content["weights"]),
                Architecture(**content["architecture"]),
                str(content["name"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(f"this is not a protocol's description ({error!r})") from None


def paper_inversion() -> Protocol:
    """The paper's training of parameter inversions: 20,000 epochs of Adam at 1e-3."""
    return Protocol((Adam(epochs=20_000, rate=1e-3),), scaled=False, name="paper")


def paper_assimilation(balance: bool = False) -> Protocol:
    """The paper's training of data assimilation: 20,000 epochs on the data, then L-BFGS on all."""
    return Protocol(
        (
            Adam(epochs=20_000, rate=1e-3, groups=("data",)),
            Lbfgs(iterations=5_000, history=50, tolerance=1e-8, balance=balance),
        ),
        scaled=False,
        name="paper",
    )
