"""The training that is recommended for any problem: short, scaled, and not memorising noise."""

from __future__ import annotations

from unpinn.problem import Observations, Problem
from unpinn.training._protocol import Protocol
from unpinn.training._stages import Adam


def recommended(problem: Problem, observations: Observations | None = None) -> Protocol:
    """The default protocol.

    A few hundred epochs on the readings alone give the fields their rough shape, which tells how
    large each equation is; then everything is trained together with residuals in those units.
    """
    if observations is None:
        return Protocol((Adam(epochs=4_000, schedule="cosine"),), name="default")
    return Protocol(
        (
            Adam(epochs=400, rate=1e-3, groups=("data",)),
            Adam(epochs=600, rate=1e-3, rescale=True),
            Adam(epochs=3_000, rate=1e-3, schedule="cosine", rescale=True),
        ),
        name="default",
    )
