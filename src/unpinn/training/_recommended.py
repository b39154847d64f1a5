"""The training that is recommended for any problem: short, scaled, and not memorising noise."""

from __future__ import annotations

from unpinn.problem import Observations, Problem
from unpinn.training._protocol import Protocol
from unpinn.training._stages import Adam


def recommended(problem: Problem, observations: Observations | None = None) -> Protocol:
    """The default protocol.

    First the fields take their rough shape from the readings, with the equations at a hundredth:
    enough that noise is not memorised, little enough that the unknowns can move. That shape tells
    how large each equation is, and then equations and readings weigh alike in their own units.
    """
    if observations is None:
        stages = (Adam(epochs=4_000, rate=2e-3, schedule="cosine", rescale="reference"),)
        return Protocol(stages, name="default")
    return Protocol(
        (
            Adam(epochs=1_000, rate=2e-3, rescale="reference", weights={"equations": 0.01}),
            Adam(epochs=2_500, rate=2e-3, schedule="cosine", rescale="measured"),
        ),
        name="default",
    )
