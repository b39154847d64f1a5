"""The training that is recommended for any problem: short, scaled, and not memorising noise."""

from __future__ import annotations

from unpinn.problem import Observations, Problem
from unpinn.training._protocol import Protocol
from unpinn.training._stages import Adam


def recommended(problem: Problem, observations: Observations | None = None) -> Protocol:
    """The default protocol.

    The equations' weight grows from a hundredth to one, in units of their own size: the fields
    first take their rough shape from the readings, which tells how large each equation is and
    where the unknowns lie, but never without the equations, so that noise is not memorised.
    """
    if observations is None:
        stages = (Adam(epochs=4_000, rate=2e-3, schedule="cosine", rescale="reference"),)
        return Protocol(stages, name="default")
    return Protocol(
        (
            Adam(epochs=1_000, rate=2e-3, rescale="reference", weights={"equations": 0.01}),
            Adam(epochs=1_000, rate=2e-3, rescale="measured", weights={"equations": 0.1}),
            Adam(epochs=2_000, rate=2e-3, schedule="cosine", rescale="measured"),
        ),
        name="default",
    )
