"""The commented problem file that a new user starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn._files import write_text

_STARTER = '''\
"""{title}: say here in one line what is measured and what is sought.

    unpinn run {name} --data sensors.csv

This file is plain Python. Replace the example, a rod that cools while heat spreads along it, with
your own equation; everything that is not needed can go.
"""

import jax.numpy as jnp

import unpinn

# The domain: each coordinate's lowest and highest value. "t" is taken for the time.
coordinates = {{"x": (0.0, 0.5), "t": (0.0, 600.0)}}

# What is to be found beside the field. The initial value sets the size that training thinks in:
# the right order of magnitude is enough. bounds=(low, high) keep to one side (None: open);
# log=True is for numbers of which not even the order of magnitude is known. A coefficient that
# varies over the domain is unpinn.Field("name", scale=...), and has derivatives like a field.
unknowns = [
    unpinn.Scalar("diffusivity", initial=1e-5, bounds=(0, None)),
    unpinn.Scalar("loss", initial=1e-3, bounds=(0, None)),
]


# An equation is a function that should vanish everywhere. Its arguments' names choose what it is
# given: fields, unknowns, coordinates. Derivatives are attributes: T.t, T.xx, T.xxxx, T.xt,
# T.laplacian. Functions come from jax.numpy and take values: jnp.sin(x), jnp.exp(T.value).
def heat(T, diffusivity, loss):
    return T.t - diffusivity * T.xx + loss * T


# What is known on the boundary or at the start, if anything is.
conditions = [
    unpinn.Condition("insulated end", lambda T: T.x, at={{"x": "high"}}),
    unpinn.Condition("profile at the start", lambda T, x: T - 80 * jnp.exp(-((x / 0.1) ** 2)),
                     at={{"t": "low"}}),
]

problem = unpinn.Problem(
    coordinates=coordinates,
    fields=["T"],
    unknowns=unknowns,
    equations={{"heat": heat}},
    conditions=conditions,
    # What an instrument shows, where that is no field at a point; then a column of that name is
    # read: measurements={{"flux": lambda T: -T.x}}, or an average over the instrument's width:
    # measurements={{"patch": unpinn.Measurement(lambda T: T, footprint={{"x": 0.01}})}}
    collocation=unpinn.Sobol(2048),  # where the equation is enforced
)

# The units that the problem is stated in. A column "x [mm]" is converted by itself; for a file
# that names no units write "mm -> m". Units of unknowns appear in reports.
units = {{"x": "m", "t": "s", "T": "degC", "diffusivity": "m^2/s", "loss": "1/s"}}

# The columns of the data, where they are not called like the coordinates and fields:
# columns = {{"T": "thermocouple", "t": "time"}}
# The column that tells the instruments apart ("sensor" is found by itself): sensor = "channel"
# The standard deviation of the readings' errors, where it is known: sigma = 0.2
# Data in a form of your own: def read(path, problem): return unpinn.observe(problem, ...)

# How to train, where the recommended way does not suit:
# protocol = unpinn.Protocol((unpinn.Adam(epochs=2_000, rate=1e-3, schedule="cosine"),))
'''


def starter_text(name: str = "problem.py") -> str:
    """A commented problem file to start from; it runs as it is.

    >>> starter_text("beam.py").splitlines()[2].strip()
    'unpinn run beam.py --data sensors.csv'
    """
    stem = Path(name).stem.replace("_", " ").replace("-", " ").strip() or "problem"
    title = "".join(mark for mark in stem if mark.isalnum() or mark == " ").capitalize()
    safe = "".join(mark for mark in Path(name).name if mark.isalnum() or mark in "._-")
    return _STARTER.format(title=title or "Problem", name=safe or "problem.py")


def write_starter(path: Any, overwrite: bool = False) -> Path:
    """Write a commented problem file to start from; never over another file unless told to."""
    path = Path(path)
    if path.suffix != ".py":
        raise UserError(f"{path} must end in .py, since a problem file is Python")
    if path.exists() and not overwrite:
        raise UserError(f"{path} exists already; choose another name")
    write_text(path, starter_text(path.name))
    return path
