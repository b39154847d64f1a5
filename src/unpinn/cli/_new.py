"""`unpinn new`: a starter for a problem of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpinn._errors import UserError

STARTER = '''"""A vibrating beam: find its stiffness from displacements that sensors have read.

    unpinn run {name} --data sensors.csv

The file of readings needs a column for each coordinate and one for each quantity that was read:

    x,t,u
    0.25,0.1,0.31
    0.50,0.1,0.52

Empty cells are missing readings. A column called sensor says which instrument made each of them.
"""

import numpy as np

import unpinn


def beam(u, alpha):
    """The equation, with everything on one side: u_tt + alpha^2 u_xxxx = 0.

    The names of the arguments say what it needs: fields, unknowns, coordinates. Derivatives are
    attributes; u.d("x", 2) is the long way of writing u.xx, for coordinates with longer names.
    """
    return u.tt + alpha**2 * u.xxxx


def held(u):
    """The ends do not move."""
    return u


def no_moment(u):
    """Nothing bends the ends."""
    return u.xx


def released(u, x):
    """The shape at the start; jax.numpy is for what NumPy cannot do with derivatives."""
    return u - np.pi * x * (1 - x)


problem = unpinn.Problem(
    name="{stem}",
    # The domain, in the units of the readings.
    coordinates={{"x": (0, 1), "t": (0, 1)}},
    fields=["u"],
    # A number to be found; unpinn.Field("stiffness") would be a coefficient that varies in space.
    # bounds keep it on one side; log=True is for numbers known to an order of magnitude only.
    unknowns=[unpinn.Scalar("alpha", initial=0.5, bounds=(0, None))],
    equations={{"beam": beam}},
    # "walls" are the ends of every space coordinate, "low" is the start of one coordinate.
    # Leave out what is not known; readings may stand in for it.
    conditions=[
        unpinn.Condition("held", held, at="walls"),
        unpinn.Condition("no moment", no_moment, at="walls"),
        unpinn.Condition("released", released, at={{"t": "low"}}),
    ],
    # Where the equation is enforced.
    collocation=unpinn.Sobol(2048),
)

# What else may stand here:
#
# observations = unpinn.observe(problem, points, values)      # readings that are at hand in Python
#
# def read(path):                                             # a reader of your own for --data
#     return unpinn.read_observations(path, problem, units={{"t": "ms"}})
#
# protocol = unpinn.Protocol((unpinn.Adam(epochs=4000, schedule="cosine"),))   # your own training
'''


def new(
    file: Annotated[Path, typer.Argument(help="What to write, as in beam.py.")],
    force: Annotated[bool, typer.Option("--force", help="Write over a file.")] = False,
) -> None:
    """Write a commented starter for a problem of your own."""
    from unpinn._files import write_text

    if file.suffix != ".py":
        raise UserError(f"a problem file is Python and ends in .py; try {file.with_suffix('.py')}")
    if file.exists() and not force:
        raise UserError(f"{file} is there already; choose another name, or write over it (--force)")
    write_text(file, STARTER.format(name=file.name, stem=file.stem))
    typer.echo(f"wrote {file}; edit it, then: unpinn run {file} --data READINGS.csv")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("new")(new)
