"""A run that is killed in the middle of every kind of stage ends as one that was left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import hashlib, json, sys, time
import jax, numpy as np
from unpinn.network import Architecture
from unpinn.problem import Grid, Problem, Scalar, observe
from unpinn.training import Adam, Lbfgs, Protocol, train

directory, patience = sys.argv[1], float(sys.argv[2])

def decay(u, k):
    return u.t + k * u

def watch(moment):
    print(moment.stage, moment.epoch, flush=True)
    time.sleep(patience)

problem = Problem(
    coordinates={"t": (0, 1)}, fields=["u"], unknowns=[Scalar("k", initial=1.0)],
    equations={"decay": decay}, collocation=Grid(12),
)
points = np.linspace(0, 1, 20)[:, None]
noise = 0.05 * np.random.default_rng(0).standard_normal(20)
observations = observe(problem, points, np.exp(-2 * points[:, 0]) + noise)
protocol = Protocol(
    (
        Adam(epochs=40, rate=1e-2, rescale="measured"),
        Adam(epochs=40, rate=1e-2, batch=6),
        Adam(epochs=40, rate=1e-2, dropout=0.1),
        Lbfgs(iterations=40, history=4, tolerance=0.0),
    ),
    architecture=Architecture(width=5, depth=2),
)
fit = train(
    problem, observations, protocol, seed=7, watcher=watch, directory=directory,
    checkpoint_interval=0.0,
)
digest = hashlib.sha256(fit.history.rows.tobytes())
for leaf in jax.tree.leaves((fit.model, fit.optimiser)):
    digest.update(np.asarray(leaf).tobytes())
print(json.dumps([digest.hexdigest(), fit.unknowns["k"], len(fit.history)]))
"""


def start(directory: Path, cache: Path, patience: float) -> subprocess.Popen:
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache)}
    environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(directory), str(patience)],
        stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def place(line: str) -> tuple[int, int]:
    stage, epoch = line.split()
    return int(stage), int(epoch)


def run_until(directory: Path, cache: Path, stage: int, epoch: int) -> tuple[int, int]:
    """Kill a run once it is there; gives where it began."""
    child = start(directory, cache, patience=0.03)
    try:
        first = place(child.stdout.readline())
        reached = first
        while reached < (stage, epoch):
            reached = place(child.stdout.readline())
        assert reached[0] == stage, "the stage was over before it could be killed"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(60)
        child.stdout.close()
    assert child.returncode == -signal.SIGKILL
    return first


def run_to_the_end(directory: Path, cache: Path) -> tuple[tuple[int, int], list]:
    child = start(directory, cache, patience=0.0)
    out, _ = child.communicate(timeout=600)
    assert child.returncode == 0
    lines = out.splitlines()
    return place(lines[0]), json.loads(lines[-1])


def test_kills_in_every_kind_of_stage_change_nothing(tmp_path):
    cache = tmp_path / "cache"
    first, undisturbed = run_to_the_end(tmp_path / "whole", cache)
    assert first == (1, 1)
    before = (1, 0)
    for stage, epoch in ((1, 6), (1, 22), (2, 14), (3, 17), (4, 12)):
        began = run_until(tmp_path / "killed", cache, stage, epoch)
        # It went on where the one before was killed, but for the chunk that was not yet saved.
        assert began >= before
        before = (stage, epoch)
    began, ended = run_to_the_end(tmp_path / "killed", cache)
    assert began >= (4, 12)
    assert ended == undisturbed
    leftovers = {path.name for path in (tmp_path / "killed").iterdir()}
    assert "checkpoint.safetensors" in leftovers
