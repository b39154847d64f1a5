"""Files that are either whole or absent, and say which run they belong to."""

import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unpinn._errors import UserError
from unpinn._files import write_bytes


def write_archive(path: Path, arrays: Mapping[str, np.ndarray], compress: bool = False) -> None:
    """Write arrays to an `.npz` in one stroke: a reader sees the old file or the new one.

    Arguments:
        path: where to write.
        arrays: what to write; only plain numbers and text, never objects.
        compress: whether to make the file smaller and the writing slower.
    """
    buffer = io.BytesIO()
    save = np.savez_compressed if compress else np.savez
    save(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue())


def write_checkpoint(
    path: Path, settings: Mapping[str, int | float], arrays: Mapping[str, np.ndarray]
) -> None:
    """Save a run's arrays together with the settings that they belong to."""
    label = np.array(json.dumps(dict(settings), sort_keys=True))
    write_archive(path, {"settings": label, **arrays})


def read_checkpoint(
    path: Path, settings: Mapping[str, int | float], keys: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Read back a run's arrays, refusing those of a run with other settings."""
    advice = "delete it to start again."
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            label = json.loads(str(archive["settings"]))
            arrays = {key: archive[key] for key in keys}
    except Exception as error:  # a damaged archive fails in as many ways as it has bytes
        raise UserError(
            f"Cannot read the checkpoint {path.name!r} ({type(error).__name__}): {advice}"
        ) from None
    differing = sorted(key for key in settings if label.get(key) != settings[key])
    if differing:
        raise UserError(
            f"The checkpoint {path.name!r} belongs to a run with another "
            f"{' and '.join(differing)}: use the same settings, or {advice}"
        )
    return arrays
