"""The benchmarks by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from functools import cache

from unpinn._errors import UserError
from unpinn.benchmarks._benchmark import Benchmark
from unpinn.benchmarks._ebinv import ebinv
from unpinn.benchmarks._heat import heat, heat_forced
from unpinn.benchmarks._hinv import hinv
from unpinn.benchmarks._nsinv import nsinv
from unpinn.benchmarks._pinv import pinv
from unpinn.benchmarks._poisson import poisson
from unpinn.benchmarks._presets import PRESETS
from unpinn.benchmarks._stokes import stokes
from unpinn.benchmarks._wake import wake_is_cached
from unpinn.benchmarks._wave import wave
from unpinn.benchmarks._winv import winv

_BUILDERS: Mapping[str, Callable[..., Benchmark]] = {
    "pinv": pinv,
    "hinv": hinv,
    "nsinv": nsinv,
    "ebinv": ebinv,
    "winv": winv,
    "poisson": poisson,
    "heat": heat,
    "heat-forced": heat_forced,
    "wave": wave,
    "stokes": stokes,
}

BENCHMARKS: tuple[str, ...] = tuple(_BUILDERS)
"""The names, in the paper's order."""


def benchmark(
    name: str, preset: str = "paper", wake: str | os.PathLike[str] | None = None
) -> Benchmark:
    """A benchmark by name; the same name gives the same object, and so one compiled program.

    Arguments:
        name: one of `BENCHMARKS`.
        preset: "paper", or "released" for the settings of the authors' released configuration.
        wake: for nsinv, the flow's data: "embedded", "classical" (downloaded), or the path of a
            file. Unless told, the classical data if they have been downloaded, else the embedded.

    >>> benchmark("ebinv").true_scalars
    {'alpha': 1.0}
    """
    _check("problem", name, BENCHMARKS)
    _check("preset", preset, PRESETS)
    if name == "nsinv":
        chosen = "classical" if wake_is_cached() else "embedded"
        return _build(name, preset, os.fspath(wake) if wake is not None else chosen)
    if wake is not None:
        raise UserError(f"only nsinv reads a wake; leave it out for {name}")
    return _build(name, preset)


@cache
def _build(name: str, preset: str, *data: str) -> Benchmark:
    return _BUILDERS[name](preset, *data)


def _check(what: str, name: str, known: tuple[str, ...]) -> None:
    if name in known:
        return
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UserError(f"there is no {what} {name!r}{hint} (those are {', '.join(known)})")
