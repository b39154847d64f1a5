"""Writing files so that a reader never meets half of one."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError


def write_bytes(path: Path, content: bytes) -> None:
    """Write atomically: a temporary neighbour, flushed to disk, then renamed over the target."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UserError(f"cannot write {path}: {_why(error)}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
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


def read_json(path: Path) -> Any:
    """Read JSON, with one sentence where it cannot be read."""
    try:
        return json.loads(Path(path).read_bytes())
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
    metadata = {"about": json.dumps(plain(about), allow_nan=False)}
    try:
        content = save(dense, metadata)
    except SafetensorError as error:
        raise UserError(f"cannot write {path}: {error}") from None
    write_bytes(path, content)


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], Any]:
    """Read back what `write_arrays` wrote: the arrays and the description."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "np") as file:
            about = json.loads((file.metadata() or {}).get("about", "null"))
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118
    except OSError as error:
        raise UserError(f"cannot read {path}: {_why(error)}") from None
    except (SafetensorError, ValueError, RecursionError, TypeError, KeyError) as error:
        raise UserError(f"{path} is not a readable safetensors file ({error})") from None


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


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
