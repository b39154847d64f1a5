"""A heated plate with a repaired patch: where, and how badly, does it conduct?

unpinn run examples/plate/problem.py --data examples/plate/sensors.csv

The conductivity is a field of its own, with derivatives like the temperature's.
"""

from dataclasses import replace

import unpinn

HEATING = 1.5e6  # W/m^3, by a current through the plate


def conduction(temperature, k):
    """Divergence of the heat flux plus the heating, in W/m^3."""
    spread = k * temperature.laplacian
    return spread + k.x * temperature.x + k.y * temperature.y + HEATING


problem = unpinn.Problem(
    name="plate",
    coordinates={"x": (0.0, 0.2), "y": (0.0, 0.1)},
    fields=["temperature"],
    unknowns=[unpinn.Field("k", scale=20.0, offset=40.0)],
    equations={"conduction": conduction},
    conditions=[
        unpinn.Condition("cooled edges", lambda temperature: temperature - 20.0, at="walls")
    ],
    collocation=unpinn.Grid(40, 20),
)

units = {"x": "m", "y": "m", "temperature": "degC", "k": "W/(m K)"}

# The recommended stages, on a network that is smaller than the usual one, to save time.
protocol = unpinn.Protocol(
    (
        unpinn.Adam(epochs=1000, rate=2e-3, rescale="reference"),
        unpinn.Adam(epochs=2500, rate=2e-3, schedule="cosine", rescale="measured"),
    ),
    architecture=unpinn.Architecture(width=40, depth=4),
    name="plate",
)

# The conductivity shows only through the equation, which therefore has to hold to a hundredth of
# its own size rather than to the usual twentieth. With rounds of the usual 300 iterations, or of
# 1,000, the readings were still becoming likelier when the last one ended; with 3,000 they settle.
# A run that tried to remove neurons kept them all; not trying to saves half of the time.
recipe = replace(
    unpinn.default_recipe().without_pruning(),
    tolerance=0.01,
    later=(unpinn.Lbfgs(iterations=3000),),
)
