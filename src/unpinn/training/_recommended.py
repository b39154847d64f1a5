"""The training that is recommended for any problem: short, scaled, and not memorising noise."""

from __future__ import annotations

from unpinn.problem import Observations, Problem
from unpinn.training._protocol import Protocol
from unpinn.training._stages import Adam


def recommended(problem: Problem, observations: Observations | None = None) -> Protocol:
    """The default protocol.

    First the equations are divided by the sizes that they would have for half a wave over the
    domain: equations and conditions lead from the first epoch on, so that noise is not memorised
    and fields of several waves are not smoothed away. The shape that the fields take tells how
    large each equation is, and then equations and readings weigh alike in their own units.
    """
    if observations is None:
        stages = (Adam(epochs=4_000, rate=2e-3, schedule="cosine", rescale="reference"),)
        return Protocol(stages, name="default")
    return Protocol(
        (
            Adam(epochs=1_000, rate=2e-3, rescale="reference"),
            Adam(epochs=2_500, rate=2e-3, schedule="cosine", rescale="measured"),
        ),
        name="default",
    )
