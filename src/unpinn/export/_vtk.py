"""Fields as VTK image data, for ParaView and its kin; written without any library."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from unpinn._errors import UserError
from unpinn._files import write_text
from unpinn.export._grids import fields_on
from unpinn.training import Fit

_HEADER = '<?xml version="1.0"?>\n'
_VERSION = 'version="1.0" byte_order="LittleEndian" header_type="UInt64"'


def write_vtk(
    fit: Fit,
    path: Any,
    counts: Mapping[str, int] | int = 50,
    what: Sequence[str] | str | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write fields as VTK image data.

    A problem without time gives one `.vti` file. One with time gives a `.pvd` file, which is the
    one to open, and a `.vti` file a step beside it.

    Arguments:
        fit: a fit with at most three coordinates of space.
        path: where to: its ending is replaced by .vti or .pvd.
        counts: points along each coordinate, or one count for all.
        what: fields, derivatives such as "u.xx", or measurements; all fields unless told.
        overwrite: whether files of those names may be replaced.
    """
    space, time = fit.problem.space, fit.problem.time
    if not 1 <= len(space) <= 3:
        raise UserError(f"VTK holds one to three coordinates of space, not {len(space)}")
    path = Path(path).with_suffix(".vti" if time is None else ".pvd")
    places, fields = fields_on(fit, counts, what)
    steps = [None] if time is None else list(range(len(places[time])))
    digits = len(str(len(steps)))
    files = {
        path if step is None else path.with_name(f"{path.stem}_{step:0{digits}d}.vti"): step
        for step in steps
    }
    written = list(files) if time is None else [path, *files]
    for target in written:
        if target.exists() and not overwrite:
            raise UserError(f"{target} exists; choose another name, or pass overwrite=True")
    axes = [places[name] for name in space]
    for target, step in files.items():
        now = {name: _at(fit, values, step) for name, values in fields.items()}
        write_text(target, image_data(axes, now))
    if time is not None:
        write_text(path, _collection(files, places[time]))
    return written


def image_data(axes: Sequence[np.ndarray], fields: Mapping[str, np.ndarray]) -> str:
    """Fields on a uniform grid of up to three axes as the text of a `.vti` file."""
    counts = [len(axis) for axis in axes] + [1] * (3 - len(axes))
    origin = [float(axis[0]) for axis in axes] + [0.0] * (3 - len(axes))
    spacing = [float(a[1] - a[0]) if len(a) > 1 else 1.0 for a in axes]
    spacing += [1.0] * (3 - len(axes))
    extent = " ".join(f"0 {count - 1}" for count in counts)
    numbers = lambda values: " ".join(repr(v) for v in values)  # noqa: E731
    arrays = "".join(_array(name, values) for name, values in fields.items())
    return (
        f'{_HEADER}<VTKFile type="ImageData" {_VERSION}>\n'
        f'<ImageData WholeExtent="{extent}" Origin="{numbers(origin)}" '
        f'Spacing="{numbers(spacing)}">\n<Piece Extent="{extent}">\n<PointData>\n{arrays}'
        "</PointData>\n<CellData></CellData>\n</Piece>\n</ImageData>\n</VTKFile>\n"
    )


def _array(name: str, values: np.ndarray) -> str:
    # VTK's first axis runs fastest.
    content = np.ascontiguousarray(values.T, "<f8").tobytes()
    text = base64.b64encode(struct.pack("<Q", len(content)) + content).decode()
    return f'<DataArray type="Float64" Name={quoteattr(name)} format="binary">{text}</DataArray>\n'


def _at(fit: Fit, values: np.ndarray, step: int | None) -> np.ndarray:
    if step is None:
        return values
    return np.take(values, step, axis=list(fit.problem.coordinates).index(str(fit.problem.time)))


def _collection(files: Mapping[Path, int | None], times: np.ndarray) -> str:
    rows = "".join(
        f'<DataSet timestep="{float(times[step])!r}" part="0" file={quoteattr(target.name)}/>\n'
        for target, step in files.items()
        if step is not None
    )
    head = f'{_HEADER}<VTKFile type="Collection" version="1.0" byte_order="LittleEndian">\n'
    return f"{head}<Collection>\n{rows}</Collection>\n</VTKFile>\n"
