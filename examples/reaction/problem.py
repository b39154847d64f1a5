"""Two substances diffuse into each other and react: how fast do they diffuse, how fast react?

unpinn run examples/reaction/problem.py --data examples/reaction/sensors.csv

Everything is stated in SI units, in which the coefficients are of the size 1e-9 and 1e-6.
"""

from dataclasses import replace

import unpinn

# The first hour is left out. A run with it called readings of eight probes suspect beside the two
# broken ones, nearly all of them there: how it began is sharper than fourteen probes can tell.
FROM = 3600.0  # s


def balance_of_a(a, b, diffusion_a, rate):
    """What diffuses in and what is used up, in mol/(m^3 s)."""
    return a.t - diffusion_a * a.xx + rate * a * b


def balance_of_b(a, b, diffusion_b, rate):
    """The same of the other substance."""
    return b.t - diffusion_b * b.xx + rate * a * b


problem = unpinn.Problem(
    name="reaction",
    coordinates={"x": (0.0, 0.01), "t": (FROM, 72_000.0)},
    fields=["a", "b"],
    unknowns=[
        # Known to an order of magnitude from similar substances.
        unpinn.Scalar("diffusion_a", initial=5e-10, bounds=(1e-10, 1e-8), log=True),
        unpinn.Scalar("diffusion_b", initial=5e-10, bounds=(1e-10, 1e-8), log=True),
        unpinn.Scalar("rate", initial=5e-6, bounds=(1e-7, 1e-4), log=True),
    ],
    equations={"balance of a": balance_of_a, "balance of b": balance_of_b},
    conditions=[
        unpinn.Condition("no flux of a", lambda a: a.x, at="walls"),
        unpinn.Condition("no flux of b", lambda b: b.x, at="walls"),
    ],
    collocation=unpinn.Sobol(1500),
)

outside = "drop"
units = {
    "x": "m", "t": "s", "a": "mol/m^3", "b": "mol/m^3",
    "diffusion_a": "m^2/s", "diffusion_b": "m^2/s", "rate": "m^3/(mol s)",
}  # fmt: skip

# The recommended stages, on a network that is smaller than the usual one, to save time.
protocol = unpinn.Protocol(
    (
        unpinn.Adam(epochs=1000, rate=2e-3, rescale="reference"),
        unpinn.Adam(epochs=2500, rate=2e-3, schedule="cosine", rescale="measured"),
    ),
    architecture=unpinn.Architecture(width=40, depth=4),
    name="reaction",
)

# Coefficients to a hundredth want equations that hold to a hundredth of their own size rather than
# to the usual twentieth; and with the usual 300 iterations a round they still moved at the end.
recipe = replace(unpinn.default_recipe(), tolerance=0.01, later=(unpinn.Lbfgs(iterations=1000),))
