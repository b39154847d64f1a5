"""Two substances diffuse into each other and react: how fast do they diffuse, how fast react?

unpinn run examples/reaction/problem.py --data examples/reaction/sensors.csv

Everything is stated in SI units, in which the coefficients are of the size 1e-9 and 1e-6.
"""

import unpinn


def balance_of_a(a, b, diffusion_a, rate):
    """What diffuses in and what is used up, in mol/(m^3 s)."""
    return a.t - diffusion_a * a.xx + rate * a * b


def balance_of_b(a, b, diffusion_b, rate):
    """The same of the other substance."""
    return b.t - diffusion_b * b.xx + rate * a * b


problem = unpinn.Problem(
    name="reaction",
    coordinates={"x": (0.0, 0.01), "t": (0.0, 72_000.0)},
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

units = {
    "x": "m", "t": "s", "a": "mol/m^3", "b": "mol/m^3",
    "diffusion_a": "m^2/s", "diffusion_b": "m^2/s", "rate": "m^3/(mol s)",
}  # fmt: skip

protocol = unpinn.Protocol(
    (
        unpinn.Adam(epochs=1000, rate=3e-3, rescale="reference", weights={"equations": 0.01}),
        unpinn.Adam(epochs=1000, rate=3e-3, rescale="measured", weights={"equations": 0.1}),
        unpinn.Adam(epochs=3000, rate=3e-3, schedule="cosine", rescale="measured"),
    ),
    architecture=unpinn.Architecture(width=40, depth=4),
    name="reaction",
)

# By its usual schedule unlearning removes two thirds of the neurons, which a network as narrow as
# this one cannot spare; six steps remove a quarter.
recipe = unpinn.default_recipe().changed(steps=6)
