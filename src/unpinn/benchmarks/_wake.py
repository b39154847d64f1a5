"""The flow behind a circular cylinder at Reynolds number 100: the data of the problem `nsinv`.

The package carries the flow as temporal harmonics (about a megabyte). The classical data set of
Raissi, Perdikaris and Karniadakis (2019), 24 MB, is read from a path or downloaded on request.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn.benchmarks._matlab import variables

CLASSICAL_URL = (
    "https://raw.githubusercontent.com/maziarraissi/PINNs/master/main/Data/cylinder_nektar_wake.mat"
)
CLASSICAL_BLOB = "0098e4098c1df61b009137c60e3a506f8ccd27e2"
CLASSICAL_NAME = "cylinder_nektar_wake.mat"

FRAMES = 200
FRAME_SPACING = 0.1

# Far above any honest file (the classical one holds 3 million numbers); a corrupt header that
# claims more is refused before memory is asked for.
MAXIMUM_ENTRIES = 200_000_000


@dataclass(frozen=True)
class Wake:
    """Velocity and pressure behind the cylinder, on a grid of places and times.

    Arguments:
        x: the stations along the stream, shape `(nx,)`.
        y: the stations across the stream, shape `(ny,)`.
        time: the times of the frames, shape `(nt,)`.
        u: velocity along the stream, shape `(nx, ny, nt)`.
        v: velocity across the stream, the same shape.
        p: pressure, the same shape; only its gradient means anything.
        provenance: one line on where the numbers come from.
    """

    x: np.ndarray
    y: np.ndarray
    time: np.ndarray
    u: np.ndarray
    v: np.ndarray
    p: np.ndarray
    provenance: str


@dataclass(frozen=True)
class WakeHarmonics:
    r"""A periodic wake as a Fourier series in time, known at every instant.

    $$ f(t) = \sum_k B_k(t) H_k, \quad B = [1, \cos\omega t, \sin\omega t, \dots, \cos K\omega t,
    \sin K\omega t], \quad \omega = 2\pi/\text{period} $$

    Arguments:
        x: the stations along the stream, shape `(nx,)`.
        y: the stations across the stream, shape `(ny,)`.
        period: the shedding period.
        harmonics: the coefficients, shape `(2 K + 1, 3, ny, nx)`; the fields are u, v, p.

    Example:
        >>> wake = embedded_harmonics()
        >>> wake.fields(np.array([0.0, wake.period])).shape
        (2, 3, 50, 100)
    """

    x: np.ndarray
    y: np.ndarray
    period: float
    harmonics: np.ndarray

    def fields(self, time: np.ndarray, derivative: int = 0) -> np.ndarray:
        """The fields, or their time derivative, at some times: shape `(nt, 3, ny, nx)`."""
        basis = temporal_basis(time, self.period, len(self.harmonics), derivative)
        return np.tensordot(basis, np.asarray(self.harmonics, dtype=np.float64), axes=1)


def temporal_basis(time: np.ndarray, period: float, terms: int, derivative: int = 0) -> np.ndarray:
    """The Fourier basis `[1, cos wt, sin wt, ...]` or a derivative of it, shape `(nt, terms)`.

    Example:
        >>> temporal_basis(np.array([0.0]), 2 * np.pi, 5, derivative=1)
        array([[ 0., -0.,  1., -0.,  2.]])
    """
    time = np.atleast_1d(np.asarray(time, dtype=np.float64))
    frequencies = 2 * np.pi / period * np.arange(1, (terms + 1) // 2)
    angle = time[:, None] * frequencies
    cosine, sine = np.cos(angle), np.sin(angle)
    for _ in range(derivative):
        cosine, sine = -frequencies * sine, frequencies * cosine
    basis = np.empty((len(time), terms))
    basis[:, 0] = 1.0 if derivative == 0 else 0.0
    basis[:, 1::2] = cosine
    basis[:, 2::2] = sine
    return basis


def load_wake(path: str | os.PathLike[str] | None = None, *, source: str = "embedded") -> Wake:
    """The wake as frames: 100 x 50 places, 200 times a tenth apart, from the package's own data.

    Arguments:
        path: a file to read instead: the classical `.mat`, or harmonics in an `.npz`.
        source: without a path, `"embedded"` for the package's own data or `"classical"` for the
            classical file downloaded by `fetch_wake`; any other text is taken as a path. In the
            classical file the first frame, labelled 0, shows the flow at -0.1; labels are kept.

    Example:
        >>> wake = load_wake()
        >>> wake.u.shape
        (100, 50, 200)
    """
    if path is None and source == "embedded":
        return _frames(embedded_harmonics(), "embedded harmonics of the package's own simulation")
    if path is None and source == "classical":
        return _classical(_cached_classical(), "classical data set (Raissi 2019), downloaded")
    file = Path(source if path is None else path)
    if not file.is_file():
        raise UserError(
            f"There is no wake file {str(file)!r}: give the path of a .mat or .npz file, "
            "or leave it out to use the embedded wake."
        )
    if file.suffix.lower() == ".npz":
        return _frames(read_harmonics(file), f"harmonics read from {file.name}")
    if file.suffix.lower() == ".mat":
        return _classical(file, f"frames read from {file.name}")
    raise UserError(
        f"Cannot read a wake from {str(file)!r}: give the classical .mat file or an .npz of "
        "harmonics."
    )


def embedded_harmonics() -> WakeHarmonics:
    """The wake that the package carries, as harmonics."""
    data = resources.files("unpinn.benchmarks") / "data" / "cylinder_wake.npz"
    with resources.as_file(data) as file:
        return read_harmonics(file)


def read_harmonics(path: str | os.PathLike[str]) -> WakeHarmonics:
    """Read and check harmonics written by the generator (keys x, y, period, harmonics)."""
    name = Path(path).name
    keys = ("x", "y", "period", "harmonics")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            missing = [key for key in keys if key not in archive.files]
            arrays = {} if missing else {key: archive[key] for key in keys}
    except Exception as error:  # a damaged archive fails in as many ways as it has bytes
        raise UserError(
            f"Cannot read wake file {name!r} ({_reason(error)}): it is truncated or not an .npz "
            "archive, so generate or copy it again."
        ) from None
    _require_keys(name, missing, keys)
    for key in keys:
        _require_numbers(name, key, arrays[key])
    x, y, harmonics = arrays["x"], arrays["y"], arrays["harmonics"]
    _require_axis(name, "x", x)
    _require_axis(name, "y", y)
    if arrays["period"].ndim != 0 or arrays["period"] <= 0:
        raise UserError(
            f"Wake file {name!r} needs one positive number as 'period': generate it again."
        )
    expected = f"(odd, 3, {len(y)}, {len(x)})"
    if harmonics.ndim != 4 or harmonics.shape[1:] != (3, len(y), len(x)) or len(harmonics) % 2 == 0:
        raise UserError(
            f"Wake file {name!r} has 'harmonics' of shape {harmonics.shape} where {expected} is "
            "needed: generate it again."
        )
    return WakeHarmonics(x=x, y=y, period=float(arrays["period"]), harmonics=harmonics)


def wake_is_cached(directory: str | os.PathLike[str] | None = None) -> bool:
    """Whether the classical file has been downloaded (its content is checked when it is used)."""
    return _cache_file(directory).is_file()


def fetch_wake(directory: str | os.PathLike[str] | None = None) -> Path:
    """Download the classical file into the user's cache, check its content, and return its path.

    A file that is already there and correct is left alone. The check is git's blob identifier.

    Arguments:
        directory: where to keep it; the user's cache directory by default.
    """
    import pooch

    target = _cache_file(directory)
    if target.is_file() and git_blob_identifier(target) == CLASSICAL_BLOB:
        return target
    advice = "check the connection, or copy the file here by other means and pass its path."
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, suffix=".part")
        os.close(handle)
        pooch.HTTPDownloader(timeout=30)(CLASSICAL_URL, temporary, None)
        found = git_blob_identifier(temporary)
        if found != CLASSICAL_BLOB:
            raise UserError(
                f"The download from {CLASSICAL_URL} is not the classical wake (its git blob is "
                f"{found[:12]}, not {CLASSICAL_BLOB[:12]}): {advice}"
            )
        os.replace(temporary, target)
    except OSError as error:
        raise UserError(
            f"Could not download the classical wake from {CLASSICAL_URL} "
            f"({type(error).__name__}): {advice}"
        ) from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
    return target


def git_blob_identifier(path: str | os.PathLike[str]) -> str:
    """The SHA-1 under which git stores a file with this content."""
    content = Path(path).read_bytes()
    digest = hashlib.sha1(f"blob {len(content)}\0".encode(), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def _cache_file(directory: str | os.PathLike[str] | None) -> Path:
    if directory is None:
        import pooch

        directory = pooch.os_cache("unpinn")
    return Path(directory) / CLASSICAL_NAME


def _cached_classical() -> Path:
    file = _cache_file(None)
    if not file.is_file():
        raise UserError(
            "The classical wake has not been downloaded: run `unpinn data fetch wake`, pass the "
            "path of a copy, or use the embedded wake."
        )
    if git_blob_identifier(file) != CLASSICAL_BLOB:
        raise UserError(
            f"The cached wake file {CLASSICAL_NAME!r} is damaged: run `unpinn data fetch wake` "
            "to download it again."
        )
    return file


def _frames(wake: WakeHarmonics, provenance: str) -> Wake:
    time = FRAME_SPACING * np.arange(FRAMES)
    with np.errstate(all="ignore"):
        fields = wake.fields(time)
    if not np.isfinite(fields).all():
        raise UserError(
            f"The wake has no finite values ({provenance}): its period or its harmonics are out of "
            "range, so generate it again."
        )
    u, v, p = np.moveaxis(fields, (1, 3, 2, 0), (0, 1, 2, 3))
    return Wake(x=wake.x, y=wake.y, time=time, u=u, v=v, p=p, provenance=provenance)


def _classical(file: Path, provenance: str) -> Wake:
    arrays = _read_classical(file)
    name = file.name
    places, time = arrays["X_star"], arrays["t"].ravel()
    velocity, pressure = arrays["U_star"], arrays["p_star"]
    count, frames = len(places), len(time)
    expected = {
        "X_star": (count, 2),
        "t": (frames, 1),
        "U_star": (count, 2, frames),
        "p_star": (count, frames),
    }
    for key, shape in expected.items():
        if arrays[key].shape != shape:
            raise UserError(
                f"Wake file {name!r} has {key!r} of shape {arrays[key].shape} where {shape} is "
                "needed: use an unmodified copy of the classical file."
            )
    _require_axis(name, "t", time)
    x, column = np.unique(places[:, 0], return_inverse=True)
    y, row = np.unique(places[:, 1], return_inverse=True)
    cell = column * len(y) + row
    if len(x) * len(y) != count or len(np.unique(cell)) != count:
        raise UserError(
            f"Wake file {name!r} has places in 'X_star' that do not form a rectangular grid: "
            "use an unmodified copy of the classical file."
        )

    def on_grid(rows: np.ndarray) -> np.ndarray:
        ordered = np.empty((count, frames))
        ordered[cell] = rows
        return ordered.reshape(len(x), len(y), frames)

    u, v, p = on_grid(velocity[:, 0]), on_grid(velocity[:, 1]), on_grid(pressure)
    return Wake(x=x, y=y, time=time, u=u, v=v, p=p, provenance=provenance)


def _read_classical(file: Path) -> dict[str, np.ndarray]:
    keys = ("X_star", "t", "U_star", "p_star")

    def attempt(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except Exception as error:  # a damaged file fails in as many ways as it has bytes
            raise UserError(
                f"Cannot read wake file {file.name!r} ({_reason(error)}): it is truncated or not a "
                "MATLAB version 5 file, so fetch or copy it again."
            ) from None

    found = {each.name: each for each in attempt(lambda: list(variables(file.read_bytes())))}
    _require_keys(file.name, [key for key in keys if key not in found], keys)
    if any(np.prod(found[key].shape, dtype=float) > MAXIMUM_ENTRIES for key in keys):
        raise UserError(f"Wake file {file.name!r} claims impossibly large arrays: copy it again.")
    arrays = {}
    for key in keys:
        content = attempt(found[key].read)
        _require_numbers(file.name, key, content)
        arrays[key] = np.asarray(content, dtype=np.float64)
    return arrays


def _reason(error: Exception) -> str:
    return type(error).__name__


def _require_keys(name: str, missing: list[str], keys: tuple[str, ...]) -> None:
    if missing:
        raise UserError(
            f"Wake file {name!r} lacks {', '.join(map(repr, missing))}: it must hold "
            f"{', '.join(keys)}."
        )


def _require_numbers(name: str, key: str, array: Any) -> None:
    kind = getattr(getattr(array, "dtype", None), "kind", "O")
    if kind not in "fiu" or not np.all(np.isfinite(array)):
        raise UserError(
            f"Wake file {name!r} must hold finite real numbers in {key!r}: copy or generate it "
            "again."
        )


def _require_axis(name: str, key: str, axis: np.ndarray) -> None:
    if axis.ndim != 1 or len(axis) < 2 or np.any(np.diff(axis) <= 0):
        raise UserError(
            f"Wake file {name!r} must hold at least two increasing numbers in {key!r}: copy or "
            "generate it again."
        )
