"""A simply supported steel beam rings: how stiff is it, judged from accelerations and strains?

unpinn run examples/beam/problem.py --data examples/beam/sensors.csv

No instrument shows the deflection itself: accelerometers read its second derivative in time, strain
gauges its second derivative in space.
"""

import unpinn

LENGTH = 2.0  # m
MASS = 7.8  # kg/m, weighed
HALF_HEIGHT = 0.01  # m, from the neutral axis to the gauges


def bending(u, stiffness):
    """Euler and Bernoulli: inertia against bending, both per metre, in N/m."""
    return MASS * u.tt + stiffness * u.xxxx


problem = unpinn.Problem(
    name="beam",
    coordinates={"x": (0.0, LENGTH), "t": (0.0, 0.06)},
    fields=["u"],
    unknowns=[unpinn.Scalar("stiffness", initial=1e4, bounds=(0, None))],
    equations={"bending": bending},
    conditions=[
        unpinn.Condition("supports", lambda u: u, at="walls"),
        unpinn.Condition("no moment at the supports", lambda u: u.xx, at="walls"),
    ],
    measurements={
        "acceleration": lambda u: u.tt,
        "strain": lambda u: -1e6 * HALF_HEIGHT * u.xx,  # gauges tell micrometres a metre
    },
    scales={"u": 1e-3},  # no reading shows the deflection; about a millimetre is expected
    collocation=unpinn.Sobol(800),
)

units = {
    "x": "m", "t": "s", "u": "m", "acceleration": "m/s^2", "strain": "µm/m",
    "stiffness": "N m^2",
}  # fmt: skip

# The recommended stages; what rings is better told by sines than by steps.
protocol = unpinn.Protocol(
    (
        unpinn.Adam(epochs=1000, rate=2e-3, rescale="reference"),
        unpinn.Adam(epochs=2500, rate=2e-3, schedule="cosine", rescale="measured"),
    ),
    architecture=unpinn.Architecture(width=40, depth=3, activation="sin"),
    name="beam",
)

# A network as narrow as this one has few neurons to spare; not trying to saves half of the time.
recipe = unpinn.default_recipe().without_pruning()
