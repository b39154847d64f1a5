"""A fit as a compiled program in a file, to be run where this package is not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.export  # not part of `import jax`
import numpy as np

from unpinn import precision as precision_of
from unpinn._errors import UserError
from unpinn._files import read_arrays, write_arrays, write_text
from unpinn.export._function import as_function
from unpinn.training import Fit

_FORMAT = "unpinn program 1"
_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@dataclass(frozen=True, eq=False)
class Program:
    """A program read back from a file.

    Arguments:
        coordinates: what the columns of its points are.
        quantities: what the columns of its result are.
        unknowns: the unknown numbers of the fit that it came from.
        units: of coordinates, quantities and unknowns, where known.
        precision: of its numbers.
        exported: the program as JAX holds it.
    """

    coordinates: tuple[str, ...]
    quantities: tuple[str, ...]
    unknowns: dict[str, float]
    units: dict[str, str]
    precision: str
    exported: Any

    def __call__(self, points: Any) -> np.ndarray:
        """The quantities at points (n, dimensions), as (n, quantities)."""
        points = np.asarray(points, self.precision)
        if points.ndim != 2 or points.shape[1] != len(self.coordinates):
            raise UserError(
                f"points must be an array (n, {len(self.coordinates)}) of "
                f"{', '.join(self.coordinates)}, not of shape {points.shape}"
            )
        with precision_of.scope(self.precision):
            return np.asarray(self.exported.call(points))


def write_program(
    fit: Fit,
    path: Any,
    what: Sequence[str] | str | None = None,
    precision: str = "float32",
    overwrite: bool = False,
) -> Path:
    """Write the map from points to fields as a StableHLO program for any number of points.

    A path ending in `.mlir` gets the program's text, for other compilers; any other gets a file
    that `load_program` runs with nothing but JAX and safetensors.

    Arguments:
        fit: a fit.
        path: where to.
        what: fields, derivatives such as "u.xx", or measurements; all fields unless told.
        precision: "float32" or "float64".
        overwrite: whether a file of that name may be replaced.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise UserError(f"{path} exists; choose another name, or pass overwrite=True")
    names = fit.problem.columns if what is None else (what,) if isinstance(what, str) else what
    names = tuple(names)
    function = as_function(fit, names, precision)
    with precision_of.scope(precision), _without_paths():
        (count,) = jax.export.symbolic_shape("n")
        points = jax.ShapeDtypeStruct((count, fit.problem.dimension), np.dtype(precision))
        # Text for other compilers takes the points and nothing else; it is one platform's.
        platforms = ("cpu",) if path.suffix == ".mlir" else _PLATFORMS
        exported = jax.export.export(jax.jit(function), platforms=platforms)(points)
    if path.suffix == ".mlir":
        write_text(path, exported.mlir_module())
        return path
    about = {
        "format": _FORMAT,
        "coordinates": list(fit.problem.coordinates),
        "quantities": list(names),
        "unknowns": fit.unknowns,
        "units": dict(fit.problem.source.get("units", {})),
        "precision": precision,
        "jax": fit.versions.jax,
    }
    _need_flatbuffers()
    write_arrays(path, {"program": np.frombuffer(exported.serialize(), np.uint8)}, about)
    return path


def load_program(path: Any) -> Program:
    """Read a program back; it can compute, and nothing else."""
    arrays, about = read_arrays(Path(path))
    if not isinstance(about, dict) or about.get("format") != _FORMAT or "program" not in arrays:
        raise UserError(f"{path} holds no program of this package")
    _need_flatbuffers()
    try:
        exported = jax.export.deserialize(bytearray(arrays["program"].tobytes()))
        # A program of this package is arithmetic and checks shapes; other calls into the host
        # would be a stranger's.
        called = {*re.findall(r"custom_call\W+([\w.]+)", exported.mlir_module())}
        if any(not re.fullmatch(r"shape_assertion|(mhlo|chlo|stablehlo)\..*", n) for n in called):
            raise UserError(f"{path} calls functions of the host, which no program of ours does")
        (points,), (result,) = exported.in_avals, exported.out_avals
        shapes = (points.shape[1:], result.shape[1:])
        if shapes != ((len(about["coordinates"]),), (len(about["quantities"]),)):
            raise UserError(f"{path} names other coordinates or quantities than its program has")
        return Program(
            tuple(about["coordinates"]), tuple(about["quantities"]), dict(about["unknowns"]),
            dict(about["units"]), precision_of.check(about["precision"]), exported,
        )  # fmt: skip
    except UserError:
        raise
    except Exception as error:  # whatever JAX meets in a damaged program
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(f"{path} is damaged, or needs another JAX ({told[0][:160]})") from None


@contextmanager
def _without_paths() -> Iterator[None]:
    """JAX notes the source file of every operation; this machine's folders are nobody's concern."""
    name = "jax_hlo_source_file_canonicalization_regex"
    earlier = getattr(jax.config, name)
    jax.config.update(name, ".*")
    try:
        yield
    finally:
        jax.config.update(name, earlier)


def _need_flatbuffers() -> None:
    if find_spec("flatbuffers") is None:
        raise UserError("programs are kept with the package flatbuffers; pip install flatbuffers")
