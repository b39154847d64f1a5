"""What the fault injection kills: one piece of work a time, in a process of its own.

`python victim.py` reads lines of JSON from its standard input, each {"work", "directory", "fate"},
and for each forks a child that does the work. It has imported everything but started no threads, so
that a kill costs no import. The server says "ready" first; a child writes to the standard output

    child PID          it has begun
    moment             it has finished some epochs, a sample, or a part of a run
    worker PID         a worker process of a study has begun
    done DIGEST WRITES the work is done; DIGEST is of all weights, histories and metrics, WRITES is
                       how many files were written
    failed REASON      it ended otherwise
    ended CODE         the child is gone

A fate [point, number] has the child kill itself at the number-th writing of a file: "open" when a
temporary file was just made, "half" with half of its content written, "flushed" before it gets its
name, "renamed" afterwards.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import signal
import sys
import traceback
import types
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas

from unpinn import _files
from unpinn.network import Architecture
from unpinn.problem import Grid, Problem, Scalar, observe
from unpinn.rivals import Task, _bayesian, run_method
from unpinn.rivals._chain import run_chain
from unpinn.runs import Configuration, execute_or_read, pose
from unpinn.study import (
    Choice,
    Cluster,
    InProcess,
    LocalProcesses,
    Source,
    Store,
    graph_of,
    parse_plan,
    run_study,
)
from unpinn.study import _process as study_process
from unpinn.training import Adam, Lbfgs, Protocol, train
from unpinn.training._checkpoint import Checkpoint

PROBLEM = """
import numpy as np
from unpinn import Adam, Architecture, Grid, Lbfgs, Problem, Protocol, Recipe, Scalar, observe
from unpinn.unlearning import ByMixture, Schedule

problem = Problem(
    coordinates={"t": (0, 1)},
    fields=["u"],
    unknowns=[Scalar("rate", initial=0.5)],
    equations={"decay": lambda u, rate: u.t + rate * u},
    collocation=Grid(8),
    name="decay",
)
_points = np.linspace(0, 1, 30)[:, None]
_error = 0.01 * np.random.default_rng(0).standard_normal(30)
_error[::5] += 0.8
observations = observe(problem, _points, np.exp(-2 * _points[:, 0]) + _error)
protocol = Protocol((Adam(epochs=40, rate=1e-2),), architecture=Architecture(width=6, depth=2))
recipe = Recipe(
    "tiny", ByMixture(), Schedule(steps=3, fraction=0.1),
    (Adam(epochs=30, rate=1e-3), Lbfgs(iterations=20)), (Lbfgs(iterations=20),), rounds=3,
)
"""

PLAN = """
title = "Decay"

[defaults]
seeds = [1, 2]

[[table]]
name = "rates"
problems = ["decay.py"]
methods = ["pinn", "ppinn"]
quantities = ["unknowns.rate", "misfit"]
"""

# What differs between two runs of the same settings: times, and where they were run.
_INCIDENTAL = {"seconds", "seconds_in_all", "timings", "wall", "environment", "time", "versions"}


def tell(*words: object) -> None:
    """One line, in one write, so that lines of several processes do not mix."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def moment(_: Any) -> None:
    """A watcher."""
    tell("moment")


# -- the kinds of work ------------------------------------------------------------------------


def decay() -> tuple[Problem, Any]:
    def equation(u, k):
        return u.t + k * u

    problem = Problem(
        coordinates={"t": (0, 1)}, fields=["u"], unknowns=[Scalar("k", initial=1.0)],
        equations={"decay": equation}, collocation=Grid(12),
    )  # fmt: skip
    points = np.linspace(0, 1, 20)[:, None]
    noise = 0.05 * np.random.default_rng(0).standard_normal(20)
    return problem, observe(problem, points, np.exp(-2 * points[:, 0]) + noise)


TINY = Architecture(width=5, depth=2)


def trained(directory: Path, *stages) -> str:
    fit = train(
        *decay(), Protocol(stages, architecture=TINY), seed=7, watcher=moment, directory=directory,
        checkpoint_interval=0.0,
    )  # fmt: skip
    return digest_of_fit(fit)


def adam(directory: Path) -> str:
    return trained(
        directory,
        Adam(epochs=60, rate=1e-2, rescale="measured"),
        Adam(epochs=30, rate=1e-2, batch=6, dropout=0.1),
    )


def lbfgs(directory: Path) -> str:
    return trained(
        directory, Adam(epochs=5, rate=1e-2), Lbfgs(iterations=60, history=4, tolerance=0.0)
    )


def bpinn(directory: Path) -> str:
    problem, observations = decay()
    protocol = Protocol((Adam(epochs=20, rate=1e-2),), architecture=TINY)
    task = Task(
        problem, observations, protocol, 7, directory=directory, watcher=moment,
        options={"steps": 3, "burn_in": 12, "samples": 20},
    )  # fmt: skip
    return digest_of_fit(run_method("bpinn", task))


def unlearning(directory: Path) -> str:
    """A whole run of the paper's method: baseline, partition, pruning, rounds, all outputs."""
    statement(directory)
    posed = pose(Configuration(str(directory / "decay.py"), "ppinn", seed=7))
    run = execute_or_read(posed, directory / "run", watcher=moment, announce=moment, pictures=False)
    return digest_of([digest_of_fit(run.fit), substance(run.records), files_of(directory)])


def statement(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    # Two processes may be at it, and neither may meet half of it.
    draft = directory / f"decay.{os.getpid()}"
    draft.write_text(PROBLEM)
    os.replace(draft, directory / "decay.py")


def studied(directory: Path, executor: Any) -> str:
    statement(directory)
    plan = parse_plan(Source("decay.toml", PLAN), directory)
    graph = graph_of([plan], Choice("paper", (1, 2)))
    store = Store(directory / "store")
    summary = run_study(graph, store, executor)
    if summary.failed:
        raise RuntimeError(f"runs failed: {summary.failed}")
    return files_of(directory)


def study(directory: Path) -> str:
    """A study in the process that is killed."""
    from unpinn.study import _perform

    class Teller(_perform._Teller):
        def __call__(self, now):
            super().__call__(now)
            tell("moment")

    _perform._Teller = Teller
    return studied(directory, InProcess())


def processes(directory: Path) -> str:
    """A study whose worker processes are killed, or itself with them."""
    begun = study_process.subprocess.Popen

    class Popen(begun):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            tell("worker", self.pid)

    study_process.subprocess.Popen = Popen
    # How often a run may take its process down is a guard against another fault.
    study_process._TRIES = 1000
    return studied(directory, LocalProcesses(1))


def cluster(directory: Path) -> str:
    """A study on a Dask cluster whose workers are killed."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.scheduler.allowed-failures": 1000})
    options = {"dashboard_address": None, "local_directory": str(directory / "dask")}
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, **options) as local,
        Client(local) as client,
    ):
        known: set[int] = set()

        def look():
            for nanny in local.workers.values():
                # One that is killed while it starts is given up by Dask's own nanny.
                ready = nanny.status.name == "running"
                if ready and nanny.pid and nanny.pid not in known:
                    known.add(nanny.pid)
                    tell("worker", nanny.pid)

        look()
        watching = client.loop
        from tornado.ioloop import PeriodicCallback

        watching.add_callback(lambda: PeriodicCallback(look, 50).start())
        return studied(directory, Cluster(client))


WORK = {work.__name__: work for work in (adam, lbfgs, bpinn, unlearning, study, processes, cluster)}


# -- what is compared -------------------------------------------------------------------------


def digest_of_fit(fit: Any) -> str:
    """Every weight, the optimiser's state, every epoch's numbers, what was found, why it ended."""
    digest = hashlib.sha256(fit.history.rows.tobytes())
    for leaf in jax.tree_util.tree_leaves((fit.model, fit.optimiser, fit.members)):
        digest.update(np.asarray(leaf).tobytes())
    digest.update(json.dumps([fit.unknowns, vars(fit.status)]).encode())
    return digest.hexdigest()


def files_of(directory: Path) -> str:
    """All that the files under a directory say, but for times and where the directory is."""
    from unpinn._files import read_arrays, read_json

    found: dict[str, Any] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.suffix == ".safetensors":
            arrays, about = read_arrays(path)
            found[name] = [{k: digest_of(v.tobytes().hex()) for k, v in arrays.items()}, about]
        elif path.suffix == ".json":
            found[name] = substance(read_json(path))
        elif path.suffix == ".parquet":
            frame = pandas.read_parquet(path)
            found[name] = frame.to_csv()
        elif path.suffix == ".csv":
            found[name] = path.read_text()
    return digest_of(json.loads(json.dumps(found).replace(str(directory), "")))


def substance(content: Any) -> Any:
    """A record without what differs between any two runs."""
    if isinstance(content, dict):
        return {k: substance(v) for k, v in content.items() if k not in _INCIDENTAL}
    return [substance(item) for item in content] if isinstance(content, list) else content


def digest_of(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# -- dying while writing -----------------------------------------------------------------------

_written = 0


def watch_writing(fate: list | None) -> None:
    """Count the files that are written, and die at the one and the point that fate names."""
    point, fatal = fate or ("", 0)
    write, flush, rename = _files.os.fdopen, os.fsync, os.replace

    def die(here: str) -> None:
        if here == point and _written == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    class Opened:
        """A temporary file under way."""

        def __init__(self, file: Any):
            self._file = file

        def __enter__(self):
            die("open")
            return self

        def __exit__(self, *_: Any) -> None:
            self._file.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def write(self, content: bytes) -> None:
            self._file.write(content[: len(content) // 2])
            self._file.flush()
            die("half")
            self._file.write(content[len(content) // 2 :])

    def opened(handle: int, mode: str) -> Opened:
        global _written
        _written += 1
        return Opened(write(handle, mode))

    def flushed(handle: int) -> None:
        flush(handle)
        die("flushed")

    def renamed(old: Any, new: Any) -> None:
        rename(old, new)
        die("renamed")

    system = types.SimpleNamespace(**vars(os))
    system.fdopen, system.fsync, system.replace = opened, flushed, renamed
    _files.os = system


# -- the server -------------------------------------------------------------------------------


def serve() -> None:
    import distributed  # noqa: F401

    # Checkpoints as often as can be, so that a kill often meets one being written.
    Checkpoint.due = lambda self: True
    _bayesian.run_chain = functools.partial(run_chain, interval=0.0)
    tell("ready")
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            os.setsid()
            tell("child", os.getpid())
            watch_writing(order.get("fate"))
            code = 0
            try:
                tell("done", WORK[order["work"]](Path(order["directory"])), _written)
            except BaseException as error:
                traceback.print_exc()
                tell("failed", type(error).__name__, str(error).replace("\n", " "))
                code = 1
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        tell("ended", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve()
