"""A dye pulse drifts down a river: how fast does the water run, and how fast does the dye decay?

unpinn run examples/river/problem.py --data examples/river/sensors.csv
"""

import unpinn


def transport(c, velocity, dispersion, decay):
    """Advection, dispersion and first-order decay."""
    return c.t + velocity * c.x - dispersion * c.xx + decay * c


problem = unpinn.Problem(
    name="river",
    coordinates={"x": (0.0, 3000.0), "t": (0.0, 5400.0)},
    fields=["c"],
    unknowns=[
        unpinn.Scalar("velocity", initial=1.0, bounds=(0, None)),
        unpinn.Scalar("dispersion", initial=5.0, bounds=(0, None)),
        unpinn.Scalar("decay", initial=3e-4, bounds=(0, None)),
    ],
    equations={"transport": transport},
    collocation=unpinn.Sobol(1500),
)

# The loggers write kilometres, minutes and micrograms; the header of sensors.csv says so.
units = {
    "x": "m", "t": "s", "c": "mg/L", "velocity": "m/s", "dispersion": "m^2/s", "decay": "1/s",
}  # fmt: skip

# The recommended stages, on a network that is smaller than the usual one, to save time.
protocol = unpinn.Protocol(
    (
        unpinn.Adam(epochs=1000, rate=2e-3, rescale="reference"),
        unpinn.Adam(epochs=2500, rate=2e-3, schedule="cosine", rescale="measured"),
    ),
    architecture=unpinn.Architecture(width=40, depth=4),
    name="river",
)
