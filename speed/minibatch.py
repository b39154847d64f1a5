"""Memory and time of training on many readings in mini-batches, one JSON line a size.

    python -m speed.minibatch
    python -m speed.minibatch --readings 100000 1000000 --points 100000 --batch 8192

Every size runs in a process of its own, from a CSV file that is read first, so `peak_gb` is the
most memory that one user's run would have needed, JAX and the reading included. `epoch_s` is
processor time, which another program's load disturbs less than the clock; `epoch_wall_s` is the
clock's. The last line compares the time a reading of the largest size with the smallest's.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WIDTH, DEPTH = 40, 4


def transport(c, velocity, dispersion):
    """A drifting, spreading pulse."""
    return c.t + velocity * c.x - dispersion * c.xx


def write_readings(path: Path, count: int) -> None:
    """A CSV file of readings of a pulse, in parts, so that writing needs little memory."""
    random = np.random.default_rng(count)
    with path.open("w") as file:
        file.write("sensor,x [mm],t [s],c\n")
        for begin in range(0, count, 50_000):
            size = min(50_000, count - begin)
            x, t = random.random((2, size))
            c = np.exp(-((x - 0.2 - 0.5 * t) ** 2) / 0.02) + 0.02 * random.standard_normal(size)
            rows = zip(random.integers(0, 200, size), 1000 * x, t, c, strict=True)
            file.writelines(f"s{s},{a:.3f},{b:.6f},{v:.5f}\n" for s, a, b, v in rows)


def measure(path: Path, points: int, batch: int) -> dict:
    """Read a file, train two epochs on it and judge every reading; what that took."""
    import unpinn
    from unpinn.network import Architecture

    problem = unpinn.Problem(
        coordinates={"x": (0, 1), "t": (0, 1)},
        fields=["c"],
        unknowns=[unpinn.Scalar("velocity", 1.0), unpinn.Scalar("dispersion", 0.1)],
        equations={"transport": transport},
        collocation=unpinn.Sobol(points),
    )
    before, began = _peak_gb(), time.process_time()
    observations = unpinn.read_observations(path, problem, units={"x": "m"})
    read_s, read_gb = time.process_time() - began, _peak_gb()
    ends: list[tuple[float, float]] = []
    protocol = unpinn.Protocol(
        (unpinn.Adam(epochs=2, batch=batch),), architecture=Architecture(width=WIDTH, depth=DEPTH)
    )
    fit = unpinn.train(
        problem, observations, protocol,
        watcher=lambda moment: ends.append((time.process_time(), time.perf_counter())),
    )  # fmt: skip
    fit.misfits()
    # The watcher is told after every epoch: between two calls lies one, without compilation.
    processor, wall = np.diff(ends, axis=0)[0]
    return {
        "readings": len(observations),
        "points": points,
        "batch": batch,
        "read_s": round(read_s, 2),
        "read_gb": round(read_gb - before, 2),
        "epoch_s": round(processor, 2),
        "epoch_wall_s": round(wall, 2),
        "loss": [round(value, 5) for value in fit.history["total"]],
        "peak_gb": round(_peak_gb(), 2),
    }


def _peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main(arguments: list[str] | None = None) -> None:
    """Print a line for every size, and how the time a reading compares."""
    parser = argparse.ArgumentParser(prog="python -m speed.minibatch")
    parser.add_argument("--readings", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=8_192)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.file is not None:
        print(json.dumps(measure(options.file, options.points, options.batch)))
        return
    found = []
    for count in options.readings:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "readings.csv"
            write_readings(path, count)
            command = [sys.executable, "-m", "speed.minibatch", "--file", str(path)]
            command += ["--points", str(options.points), "--batch", str(options.batch)]
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found.append(json.loads(told))
        print(told, end="", flush=True)
    per_reading = [one["epoch_s"] / one["readings"] for one in found]
    print(json.dumps({"time_a_reading_largest_over_smallest": per_reading[-1] / per_reading[0]}))


if __name__ == "__main__":
    main()
