"""A run's whole state in one atomic file, so that a killed run goes on where it was."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unpinn._errors import UserError
from unpinn._files import read_arrays, sweep, write_arrays
from unpinn.training._history import History


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Where a run is: everything that is not a function of its configuration.

    Arguments:
        stage: number of the stage, from 0.
        leaves: the stage's state.
        weights: the terms' weights in this stage.
        scales: what equations and conditions are divided by in this stage.
        history: so far.
        notes: what earlier stages said when they stopped.
        seconds: timings so far.
    """

    stage: int
    leaves: list[np.ndarray]
    weights: np.ndarray
    scales: dict[str, float]
    history: History
    notes: list[dict[str, Any]]
    seconds: dict[str, float]


class Checkpoint:
    """Writes snapshots to a file at most every few seconds, and reads the last one back.

    Arguments:
        path: the file.
        digest: of the configuration; a file of another run is refused.
        interval: seconds between writes.
    """

    def __init__(self, path: Path, digest: str, interval: float = 10.0):
        self.path = Path(path)
        self._digest = digest
        self._interval = interval
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to write again."""
        return time.monotonic() - self._last >= self._interval

    def write(self, snapshot: Snapshot) -> None:
        """Write atomically."""
        arrays = {f"state.{k:03d}": leaf for k, leaf in enumerate(snapshot.leaves)}
        arrays["weights"] = snapshot.weights
        arrays["history"] = snapshot.history.rows
        about = {
            "digest": self._digest,
            "stage": snapshot.stage,
            "scales": {k: float(v).hex() for k, v in snapshot.scales.items()},
            "names": snapshot.history.names,
            "stages": snapshot.history.stages,
            "notes": snapshot.notes,
            "seconds": snapshot.seconds,
        }
        write_arrays(self.path, arrays, about)
        self._last = time.monotonic()

    def read(self) -> Snapshot | None:
        """The last snapshot, or None where there is none."""
        sweep(self.path.parent, self.path.name)
        if not self.path.exists():
            return None
        arrays, about = read_arrays(self.path)
        try:
            if about["digest"] != self._digest:
                raise UserError(
                    f"{self.path} is the checkpoint of a run with another configuration; choose "
                    "another output directory, or delete it to start afresh"
                )
            leaves = [arrays[name] for name in sorted(arrays) if name.startswith("state.")]
            history = History(
                tuple(about["names"]),
                arrays["history"],
                tuple((str(kind), int(start)) for kind, start in about["stages"]),
            )
            if history.rows.ndim != 2 or history.rows.shape[1] != len(history.names):
                raise TypeError(f"a history of shape {history.rows.shape}")
            return Snapshot(
                int(about["stage"]), leaves, arrays["weights"],
                {k: float.fromhex(v) for k, v in about["scales"].items()},
                history, list(about["notes"]), dict(about["seconds"]),
            )  # fmt: skip
        except UserError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise UserError(
                f"{self.path} is not a checkpoint of this package ({error!r})"
            ) from None

    def remove(self) -> None:
        """Delete the file; the run is over."""
        self.path.unlink(missing_ok=True)


def to_leaves(state: Any) -> list[np.ndarray]:
    """A state's arrays, copied to the host."""
    return [np.array(leaf) for leaf in jax.tree_util.tree_leaves(state)]


def from_leaves(like: Any, leaves: list[np.ndarray]) -> Any:
    """A state with the structure of another and these arrays."""
    old, structure = jax.tree_util.tree_flatten(like)
    fits = len(old) == len(leaves) and all(
        tuple(a.shape) == tuple(b.shape) and a.dtype == b.dtype
        for a, b in zip(old, leaves, strict=False)
    )
    if not fits:
        raise UserError("the saved optimiser state does not fit this model; start afresh")
    return jax.tree_util.tree_unflatten(structure, [jnp.asarray(leaf) for leaf in leaves])
