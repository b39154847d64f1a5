"""Writing files so that a reader never meets half of one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError

# What a file is called while it is written; a killed process leaves it behind.
PARTIAL = ".partial"


def write_bytes(path: Path, content: bytes) -> None:
    """Write atomically: a temporary neighbour, flushed to disk, then renamed over the target."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(PARTIAL, f".{path.name}.", path.parent)
    except OSError as error:
        raise UserError(f"cannot write {path}: {_why(error)}") from None
    try:
        with _marked(handle):
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        _flush_names(path.parent)
    except OSError as error:
        _remove(temporary)
        raise UserError(f"cannot write {path}: {_why(error)}") from None
    except BaseException:
        _remove(temporary)
        raise


def write_text(path: Path, content: str) -> None:
    """Write text atomically, as UTF-8."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically; numbers that are not finite become null."""
    write_text(path, json.dumps(plain(content), indent=2, allow_nan=False) + "\n")


def parsed(text: str | bytes) -> Any:
    """JSON's content; a whole number beyond all floats is infinite, as any other would be.

    >>> parsed("[1, 1" + 400 * "0" + "]")
    [1, inf]
    """
    return json.loads(text, parse_int=lambda told: int(told) if len(told) < 300 else float(told))


def read_json(path: Path) -> Any:
    """Read JSON, with one sentence where it cannot be read."""
    try:
        return parsed(Path(path).read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {path}: {_why(error)}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON ({error}); it may be damaged") from None


def write_arrays(path: Path, arrays: Mapping[str, Any], about: Any = None) -> None:
    """Write named arrays, and a JSON-able description, as one safetensors file, atomically."""
    from safetensors import SafetensorError
    from safetensors.numpy import save

    # Not `ascontiguousarray`, which would turn a number into an array of one.
    dense = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    told = json.dumps(plain(about), allow_nan=False)
    try:
        content = save(dense, {"about": told, "digest": _digest(dense, told)})
    except SafetensorError as error:
        raise UserError(f"cannot write {path}: {error}") from None
    write_bytes(path, content)


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], Any]:
    """Read back what `write_arrays` wrote: the arrays and the description."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        told = metadata.get("about", "null")
        # Files of other programs have none.
        if "digest" in metadata and metadata["digest"] != _digest(arrays, told):
            raise UserError(
                f"{path} is damaged: its content is not what was written, by its checksum"
            )
        return arrays, parsed(told)
    except OSError as error:
        raise UserError(f"cannot read {path}: {_why(error)}") from None
    except (SafetensorError, ValueError, RecursionError, TypeError, KeyError) as error:
        raise UserError(f"{path} is not a readable safetensors file ({error})") from None


def sweep(directory: Path, name: str = "*") -> None:
    """Remove what killed processes left half written, but nothing that is still being written.

    Arguments:
        directory: where to look, folders inside included.
        name: of the files that were being written.
    """
    for path in directory.rglob(f".{name}.*{PARTIAL}"):
        if _abandoned(path):
            _remove(str(path))


def plain(value: Any) -> Any:
    """The same value out of JSON's types: arrays as lists, numbers that are not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def _digest(arrays: Mapping[str, np.ndarray], about: str) -> str:
    """Of arrays and a description: a flipped bit would else be a number like any other."""
    digest = hashlib.sha256(about.encode())
    for name in sorted(arrays):
        array = arrays[name]
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _marked(handle: int) -> Iterator[None]:
    """Hold the system's lock on a file while it is written; it goes with the process."""
    try:
        import fcntl
    except ImportError:  # Windows refuses to remove an open file anyway
        yield
        return
    # A second handle, since the first is closed before the file gets its name.
    own = os.dup(handle)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(own)


def _abandoned(path: Path) -> bool:
    """Whether nobody is writing this unfinished file any more."""
    try:
        import fcntl
    except ImportError:
        return True
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        finally:
            os.close(handle)
    return False


def _flush_names(directory: Path) -> None:
    """Have the new name outlast a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
