"""Velocities behind a cylinder: what is the pressure there, and how viscous is the liquid?

unpinn run examples/wake/problem.py --data examples/wake/sensors.csv

Nobody measures the pressure. It follows from the velocities, up to a constant.
"""

import unpinn

DENSITY = 1200.0  # kg/m^3


def momentum(u, v, p, viscosity):
    """Navier and Stokes, in m/s^2."""
    along = u.t + u * u.x + v * u.y + p.x / DENSITY - viscosity * u.laplacian
    across = v.t + u * v.x + v * v.y + p.y / DENSITY - viscosity * v.laplacian
    return along, across


problem = unpinn.Problem(
    name="wake",
    coordinates={"x": (0.1, 0.4), "y": (-0.15, 0.15), "t": (0.0, 6.0)},
    fields=["u", "v", "p"],
    unknowns=[unpinn.Scalar("viscosity", initial=2e-4, bounds=(0, None))],
    equations={"momentum": momentum, "continuity": lambda u, v: u.x + v.y},
    scales={"p": 0.5},  # Pa; density times velocity squared is 3
    collocation=unpinn.Sobol(1500),
)

units = {"x": "m", "y": "m", "t": "s", "u": "m/s", "v": "m/s", "p": "Pa", "viscosity": "m^2/s"}

# The recommended stages, on a network that is smaller than the usual one, to save time.
protocol = unpinn.Protocol(
    (
        unpinn.Adam(epochs=1000, rate=2e-3, rescale="reference"),
        unpinn.Adam(epochs=2500, rate=2e-3, schedule="cosine", rescale="measured"),
    ),
    architecture=unpinn.Architecture(width=32, depth=4, activation="sin"),
    name="wake",
)

# A network as narrow as this one has few neurons to spare; not trying to saves half of the time.
recipe = unpinn.default_recipe().without_pruning()
