"""What a run leaves behind besides its fit and its page: the history as a table."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from unpinn._files import write_bytes
from unpinn.training import Fit


def write_history(path: Path, fits: list[Fit]) -> None:
    """Every term at every epoch, one row an epoch: the method, the stage, and the terms."""
    import pandas

    frames = []
    for fit in fits:
        history = fit.history
        frame = pandas.DataFrame(history.rows, columns=list(history.names))
        starts = [start for _, start in history.stages]
        stage = np.searchsorted(starts, np.arange(len(history)), side="right")
        kinds = np.array(["", *(kind for kind, _ in history.stages)])
        frame.insert(0, "method", fit.method)
        frame.insert(1, "stage", stage)
        frame.insert(2, "kind", kinds[stage])
        frame.insert(3, "epoch", np.arange(len(history)) - np.array([0, *starts])[stage] + 1)
        frames.append(frame)
    buffer = io.BytesIO()
    pandas.concat(frames, ignore_index=True).to_parquet(buffer, index=False)
    write_bytes(path, buffer.getvalue())
