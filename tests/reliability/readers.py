"""Every reader and loader of the package: valid files for it, ways to damage them, how it reads.

The files are as small as can be, so that many can be tried.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mutations
import numpy as np

from unpinn import UserError
from unpinn.network import Architecture
from unpinn.problem import Grid, Problem, Scalar
from unpinn.training import Adam, Protocol, load, train

Damage = Callable[[random.Random, bytes, list[bytes]], bytes]


@dataclass(frozen=True)
class Reader:
    """One way into the package for a stranger's file.

    Arguments:
        name: what tables call it.
        share: of all inputs, in parts; the slow ones get less.
        make: writes valid folders under a directory, one for each kind of file.
        read: reads such a folder, and looks at what it got as far as any caller does.
        damage: for the endings of files, how they are damaged; others are left alone.
    """

    name: str
    share: int
    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    damage: dict[str, Damage]

    def kinds(self, root: Path) -> list[Path]:
        """The valid folders, made when first asked for."""
        place = root / self.name
        if not place.exists():
            draft = root / f"{self.name}.draft"
            shutil.rmtree(draft, ignore_errors=True)
            self.make(draft)
            draft.rename(place)
        return sorted(place.iterdir())

    def victims(self, kind: Path) -> list[Path]:
        """The files of a folder that get damaged."""
        return sorted(path for path in kind.rglob("*") if path.suffix in self.damage)


# -- readings ---------------------------------------------------------------------------------

HEAT = Problem(
    coordinates={"x": (0.0, 10.0), "t": (0.0, 1e6)},
    fields=["u"],
    unknowns=[Scalar("k", initial=1.0)],
    equations={"heat": lambda u, k: u.t - k * u.xx},
    measurements={"flux": lambda u: -u.x},
    collocation=Grid(3, 3),
    name="heat",
)
_TABLES = {
    "plain": "x,t,u\n0.5,1,20\n0.6,2,21\n0.7,3,22.5\n",
    "semicolons": "# logger 3\nx;t;u;flux\n0,5;1;20;1,5\n0,6;2;21;\n0,7;3;22,5;0,1\n",
    "named": "x [mm]\tt [s]\tu\tsensor\tsigma\n500\t1\t20\ta\t0.1\n600\t2\t21\tb\t0.1\n",
    "dated": 'x,t,u,note\n0.5,2024-05-01T12:00:00,20,"a, b"\n0.6,2024-05-01T12:01:00,21,c\n',
    "blanks": "x t u\n0.5 1 20\n0.6  2 21\n0.7 3 22\n",
}


def _columns() -> dict[str, np.ndarray]:
    return {
        "x": np.array([0.5, 0.6, 0.7]), "t": np.array([1, 2, 3]), "u": np.array([20.0, 21, 22.5]),
        "sensor": np.array([1, 1, 2]), "sigma": np.array([0.1, 0.1, 0.2], np.float32),
    }  # fmt: skip


def _csv(root: Path) -> None:
    import gzip

    for name, text in _TABLES.items():
        _put(root / name / "readings.csv", text.encode())
    _put(root / "packed" / "readings.csv.gz", gzip.compress(_TABLES["plain"].encode()))
    _put(root / "wide" / "readings.csv", _TABLES["plain"].encode("utf-16"))


def _parquet(root: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(_columns())
    dated = frame.assign(t=pd.to_datetime(frame.t, unit="s"), sensor=["a", None, "b"])
    for name, table, packed in (("plain", frame, None), ("dated", dated, "snappy")):
        out = io.BytesIO()
        table.to_parquet(out, index=False, compression=packed)
        _put(root / name / "readings.parquet", out.getvalue())


def _npz(root: Path) -> None:
    for name, save in (("plain", np.savez), ("packed", np.savez_compressed)):
        out = io.BytesIO()
        save(out, **_columns())
        _put(root / name / "readings.npz", out.getvalue())


def _netcdf(root: Path) -> None:
    import xarray

    grid = xarray.Dataset(
        {"u": (("x", "t"), np.arange(6.0).reshape(2, 3), {"units": "1"})},
        {"x": ("x", [0.5, 0.6]), "t": ("t", [1.0, 2.0, 3.0])},
    )
    rows = xarray.Dataset({n: ("row", c) for n, c in _columns().items()})
    dated = grid.assign_coords(t=("t", np.array([1, 2, 3], "M8[s]").astype("M8[ns]")))
    for name, dataset, engine in (
        ("grid", grid, "h5netcdf"), ("rows", rows, "h5netcdf"), ("old", grid, "scipy"),
        ("dated", dated, "scipy"),
    ):  # fmt: skip
        path = root / name / "readings.nc"
        path.parent.mkdir(parents=True)
        dataset.to_netcdf(path, engine=engine)


def _read_readings(folder: Path) -> Any:
    from unpinn.readings import read_with_report

    (path,) = folder.iterdir()
    # A third of the calls tell units and columns, as users do.
    told: dict[str, Any] = {}
    if folder.name == "named":
        told = {"units": {"x": "m", "t": "s"}, "outside": "drop", "duplicates": "average"}
    observations, report = read_with_report(path, HEAT, **told)
    assert np.isfinite(observations.points).all()
    return report.as_dict()


# -- fits, runs -------------------------------------------------------------------------------

PROBLEM_FILE = """
import numpy as np
from unpinn import Adam, Architecture, Grid, Problem, Protocol, Recipe, Scalar, observe
from unpinn.unlearning import ByMixture, Schedule

problem = Problem(
    coordinates={"t": (0, 1)}, fields=["u"], unknowns=[Scalar("rate", initial=0.5)],
    equations={"decay": lambda u, rate: u.t + rate * u}, collocation=Grid(6), name="decay",
)
_points = np.linspace(0, 1, 12)[:, None]
_error = 0.01 * np.cos(40 * _points[:, 0])
_error[3] = 0.8
observations = observe(
    problem, _points, np.exp(-2 * _points[:, 0]) + _error, sensor=np.array(["a", "b"] * 6)
)
protocol = Protocol((Adam(epochs=30, rate=1e-2),), architecture=Architecture(width=4, depth=2))
recipe = Recipe(
    "tiny", ByMixture(), Schedule(steps=1, fraction=0.2), (Adam(epochs=10, rate=1e-3),), rounds=1,
)
"""


def _run_directory(root: Path) -> None:
    """A whole run of the method of the package, with its baseline inside."""
    from unpinn.runs import Configuration, execute, pose

    # The file has to be where the configuration says, and outlives the draft.
    stated = root.parent / "decay.py"
    _put(stated, PROBLEM_FILE.encode())
    execute(pose(Configuration(str(stated), "ppinn")), root / "run", pictures=False)


def _problem_of(folder: Path) -> Problem:
    from unpinn.readings import load_problem_file

    place = next(p for p in folder.parents if (p / "decay.py").exists())
    if place not in _KNOWN:
        _KNOWN[place] = load_problem_file(place / "decay.py").problem
    return _KNOWN[place]


_KNOWN: dict[Path, Problem] = {}


def _look_at(fit: Any) -> None:
    """What any caller of a fit does; where this needs a new program, only its shapes."""
    import jax

    assert set(fit.unknowns) == {s.name for s in fit.problem.scalars}
    points = np.zeros((2, len(fit.problem.coordinates)), np.float32)
    jax.eval_shape(fit.model.predict, points)
    _ = fit.neurons_left, fit.suspects, repr(fit.status), len(fit.history)


def _fits(root: Path) -> None:
    folder = root.parent / "run-for-fits"
    shutil.rmtree(folder, ignore_errors=True)
    _run_directory(folder)
    shutil.copytree(folder / "run" / "fit", root / "ppinn")
    shutil.rmtree(folder)


def _read_fit(folder: Path) -> None:
    _look_at(load(folder, _problem_of(folder)))


def _read_run(folder: Path) -> None:
    from unpinn.cli._tables import print_comparison
    from unpinn.runs import read_run

    fit, records = read_run(folder, _problem_of(folder))
    _look_at(fit)
    with _silenced():
        print_comparison(records, "what a command prints of it")


def _configurations(root: Path) -> None:
    from unpinn.runs import Configuration

    for name, settings in {
        "benchmark": Configuration("heat", "huber", budget="quick", options={"tuning": 2.0}),
        "noisy": Configuration("pinv", noise={"high": 0.5, "share": 0.5}, seed=7),
        "file": Configuration("river.py", "bpinn", data="river.csv", epochs=10),
    }.items():
        text = json.dumps({"format": 1, **settings.to_dict(), "problem_fingerprint": "ab12"})
        _put(root / name / "configuration.json", text.encode())


def _read_configuration(folder: Path) -> None:
    from unpinn.runs import check_method, pose, read_configuration

    asked = read_configuration(folder)
    _ = asked.name, asked.noise_name, asked.to_dict()
    if not asked.is_file and asked.problem == "pinv":
        check_method(pose(asked))


_DIGEST = "0123abcd"


def _checkpoints(root: Path) -> None:
    from unpinn._files import write_arrays
    from unpinn.training._checkpoint import Checkpoint, Snapshot
    from unpinn.training._history import History

    history = History(("loss", "data"), np.ones((4, 2)), (("adam", 0),))
    state = [np.ones(3, np.float32), np.array(4, np.int32), np.zeros((2, 3))]
    snapshot = Snapshot(
        0, state, np.ones(2), {"decay": 0.5}, history, [{"reason": "done"}], {"total": 1.5}
    )
    Checkpoint(root / "stage" / "checkpoint.safetensors", _DIGEST).write(snapshot)
    arrays = {f"state.{k}": np.ones(4 if k != 1 else (), np.float32) for k in range(3)}
    arrays |= {f"adaptation.{k}": np.float32(k) for k in range(5)}
    arrays |= {"step_size": np.float32(0.1), "positions": np.ones((2, 4)), "infos": np.ones((2, 5))}
    write_arrays(root / "chain" / "chain.safetensors", arrays, {"digest": _DIGEST})


def _read_checkpoint(folder: Path) -> None:
    import jax.numpy as jnp

    from unpinn.rivals import _chain
    from unpinn.training._checkpoint import Checkpoint

    (path,) = folder.glob("*.safetensors")
    digest = mutations.digest_in(path)
    if folder.name == "chain":
        chain = _chain._read(path, digest, jnp.zeros(4, jnp.float32))
        _ = np.mean([*chain.positions], axis=0) if chain.positions else None
        return
    found = Checkpoint(path, digest).read()
    if found is not None:
        _ = len(found.history), found.weights.sum()


# -- studies ----------------------------------------------------------------------------------

PLAN = """\
title = "Decay"
about = "How fast"

[defaults]
problems = ["heat", { problem = "poisson", label = "P", epochs = 10 }]
methods = ["pinn", { method = "ppinn", label = "ours", options = {} }]
seeds = [1, 2]
recipe = "paper"

[[table]]
name = "rates"
title = "Rates"
quantities = ["l2re", "neurons_left"]
main = true
noise = { high = 0.5, share = 0.4 }
variants = [
    { label = "few", x = 1, unlearning = { share = 0.5, steps = 2 } },
    { label = "many", x = 2.5, network = { width = 20 } },
]
figure = "curves"
axis = "share"
budgets = ["quick", "paper"]

[[note]]
text = "A remark"
tables = ["rates"]
methods = ["pinn"]
"""
ADDRESS = "0123456789abcdef"


def _plans(root: Path) -> None:
    _put(root / "decay" / "decay.toml", PLAN.encode())


def _read_plan(folder: Path) -> None:
    from unpinn.study import read_plan

    read_plan(str(folder / "decay.toml"))


def _stores(root: Path) -> None:
    from unpinn._files import write_arrays

    record = {
        "problem": "heat", "noise": "paper", "method": "pinn", "recipe": "default", "seed": 1,
        "budget": "quick", "quantity": "u", "l2re": 0.25, "state_l2re": 0.5, "seconds": 1.5,
        "neurons_left": 12, "detection_auc": None, "status": "finished", "reason": "done",
        "unknowns": {"k": 1.0}, "options": {}, "timings": {"total": 1.5}, "misfit": 0.1,
        "environment": {"threads": 1, "versions": {"jax": "0"}}, "wall": {"method": 1.0},
    }  # fmt: skip
    place = root / "run" / "runs" / ADDRESS
    _put(place / "metrics.json", json.dumps([record]).encode())
    _put(place / "afterwards.json", json.dumps({"forgetting": {"distance": 0.1}}).encode())
    about = {"shape": [2, 2], "axes": ["x", "t"], "ranges": {"u": [0.0, 1.0]}}
    write_arrays(place / "fields.safetensors", {"u": np.zeros((2, 2), np.uint16)}, about)
    failed = root / "failed" / "runs" / ADDRESS
    failure = {"reason": "no memory", "details": "", "time": "2024-05-01T12:00:00Z"}
    _put(failed / "failure.json", json.dumps(failure).encode())
    _put(failed / "progress.json", json.dumps({"epoch": 3, "epochs": 9}).encode())
    entry = {"address": ADDRESS, "configuration": {}, "record": record}
    _put(root / "taken" / "records.jsonl", json.dumps(entry).encode() + b"\n")


def _read_store(folder: Path) -> None:
    from unpinn.study import Store
    from unpinn.study._collect import collect, frame
    from unpinn.study._tables import sheets_of

    store = Store(folder)
    graph = _graph()
    _ = store.done(ADDRESS), store.progress(ADDRESS), store.fields(ADDRESS), store.begun()
    records = collect(graph, store, "quick")
    frame(records)
    for plan, table in graph.tables:
        sheets_of(plan, table, records)


def _graph() -> Any:
    """One cell, filled by the run at the address of the stores."""
    from dataclasses import replace

    from unpinn.study import Choice, Source, graph_of, parse_plan

    if "graph" not in _GRAPH:
        text = (
            'title = "One"\n[[table]]\nname = "one"\nproblems = ["poisson"]\n'
            'methods = ["pinn"]\nseeds = [1]\nquantities = ["l2re", "neurons_left", "status"]\n'
        ).replace(', "status"', "")
        graph = graph_of([parse_plan(Source("one.toml", text))], Choice("quick", (1,)))
        cells = tuple((cell, ADDRESS) for cell, _ in graph.cells)
        _GRAPH["graph"] = replace(graph, cells=cells)
    return _GRAPH["graph"]


_GRAPH: dict[str, Any] = {}


# -- the wake, problem files, exported programs -------------------------------------------------


def _wakes(root: Path) -> None:
    from scipy.io import savemat

    x, y, t = np.array([1.0, 2.0]), np.array([-1.0, 0.0, 1.0]), np.array([[0.0], [0.1]])
    out = io.BytesIO()
    np.savez(out, x=x, y=y, period=6.0, harmonics=np.ones((3, 3, 3, 2), np.float32))
    _put(root / "harmonics" / "wake.npz", out.getvalue())
    places = np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1)
    arrays = {
        "X_star": places, "t": t, "U_star": np.ones((6, 2, 2)), "p_star": np.ones((6, 2)),
    }  # fmt: skip
    for name, packed in (("classical", False), ("packed", True)):
        out = io.BytesIO()
        savemat(out, arrays, do_compression=packed)
        _put(root / name / "wake.mat", out.getvalue())


def _read_wake(folder: Path) -> None:
    from unpinn.benchmarks import load_wake

    (path,) = folder.iterdir()
    wake = load_wake(path)
    assert np.isfinite(wake.u).all() and wake.u.shape == (len(wake.x), len(wake.y), len(wake.time))


def _problem_files(root: Path) -> None:
    """What a problem file says beside its code: words and numbers, as JSON for the mutation."""
    said = {
        "units": {"x": "m", "t": "s", "u": "K"}, "columns": {"u": "temperature"}, "sigma": 0.1,
        "sensor": "station", "duplicates": "first", "outside": "drop", "missing": ["-9999"],
        "origin": None, "data": "readings.csv", "protocol": None, "recipe": None,
        "observations": None, "read": None,
    }  # fmt: skip
    text = "x [mm],t [s],temperature,station\n500,1,20,a\n600,2,-9999,b\n700,3,22.5,b\n"
    _put(root / "stated" / "readings.csv", text.encode())
    _put(root / "stated" / "said.json", json.dumps(said).encode())


_STATED = """
import json, pathlib, unpinn
problem = unpinn.Problem(
    coordinates={"x": (0.0, 10.0), "t": (0.0, 1e6)}, fields=["u"],
    unknowns=[unpinn.Scalar("k", initial=1.0)], equations={"heat": lambda u, k: u.t - k * u.xx},
    collocation=unpinn.Grid(3, 3),
)
globals().update(json.loads(pathlib.Path(__file__).with_name("said.json").read_bytes()))
"""


def _read_problem_file(folder: Path) -> None:
    from unpinn.readings import load_problem_file

    (folder / "stated.py").write_text(_STATED)
    stated = load_problem_file(folder / "stated.py")
    stated.read_data()


DECAY = Problem(
    {"t": (0, 1)}, ["u"], {"decay": lambda u, k: u.t + k * u}, unknowns=[Scalar("k", initial=1.0)],
    collocation=Grid(4),
)  # fmt: skip


def _programs(root: Path) -> None:
    from unpinn.adapters import save_mlp
    from unpinn.export import write_program

    architecture = Architecture(width=3, depth=1)
    fit = train(DECAY, None, Protocol((Adam(epochs=5),), architecture=architecture))
    save_mlp(fit.model.network, root / "mlp" / "model.safetensors")
    # Programs are kept with a package that is not one of this package's dependencies.
    if find_spec("flatbuffers") is not None:
        (root / "program").mkdir()
        write_program(fit, root / "program" / "model.safetensors")


def _read_program(folder: Path) -> None:
    from unpinn.adapters import load_mlp
    from unpinn.export import load_program

    path = folder / "model.safetensors"
    if folder.name == "mlp":
        load_mlp(path)
        return
    program = load_program(path)
    program(np.zeros((2, len(program.coordinates))))


# -- all of them ------------------------------------------------------------------------------


def _damaged_said(chance: random.Random, content: bytes, others: list[bytes]) -> bytes:
    # Code that is broken is the user's own; only what it says is tried here.
    return json.dumps(mutations.damaged_content(chance, json.loads(content))).encode()


def _damaged_lines(chance: random.Random, content: bytes, others: list[bytes]) -> bytes:
    return mutations.damaged_json(chance, content, others).replace(b"\n", b" ") + b"\n"


_JSON: dict[str, Damage] = {
    ".json": mutations.damaged_json, ".safetensors": mutations.damaged_safetensors,
}  # fmt: skip
READERS: tuple[Reader, ...] = (
    Reader("csv", 24, _csv, _read_readings,
           {".csv": mutations.damaged_table, ".gz": mutations.damaged_bytes}),
    Reader("parquet", 14, _parquet, _read_readings, {".parquet": mutations.damaged_bytes}),
    Reader("npz", 16, _npz, _read_readings, {".npz": mutations.damaged_archive}),
    Reader("netcdf", 4, _netcdf, _read_readings, {".nc": mutations.damaged_bytes}),
    Reader("fit", 3, _fits, _read_fit, _JSON),
    Reader("run", 2, _run_directory, _read_run, _JSON),
    Reader("configuration", 8, _configurations, _read_configuration, _JSON),
    Reader("checkpoint", 7, _checkpoints, _read_checkpoint, _JSON),
    Reader("store", 8, _stores, _read_store, {**_JSON, ".jsonl": _damaged_lines}),
    Reader("plan", 10, _plans, _read_plan, {".toml": mutations.damaged_plan}),
    Reader("wake", 10, _wakes, _read_wake,
           {".npz": mutations.damaged_archive, ".mat": mutations.damaged_bytes}),
    Reader("problem-file", 3, _problem_files, _read_problem_file, {".json": _damaged_said}),
    Reader("program", 1, _programs, _read_program, _JSON),
)  # fmt: skip


def tried(reader: Reader, folder: Path, say: bool = False) -> str:
    """What became of a read: "read", "refused", or the error that should not have come out.

    Arguments:
        reader: how to read.
        folder: what.
        say: give the sentence of a refusal.
    """
    with warnings.catch_warnings():
        # Libraries warn about odd numbers; only errors matter here.
        warnings.simplefilter("ignore")
        try:
            reader.read(folder)
        except UserError as error:
            told = str(error)
            if say:
                return told
            return "refused" if _one_sentence(told) else f"not one sentence: {told!r}"
        except Exception as error:
            import traceback

            place = traceback.extract_tb(error.__traceback__)[-1]
            own = [f for f in traceback.extract_tb(error.__traceback__) if "unpinn" in f.filename]
            where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in own[:-4:-1])
            return f"{type(error).__name__}: {str(error)[:200]!r} at {where} ({place.name})"
    return "read"


def _one_sentence(told: str) -> bool:
    # What is quoted in it may be long, but not the whole of a large file.
    return bool(told.strip()) and "\n" not in told and len(told) < 20_000


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class _silenced:  # noqa: N801
    """Nothing is printed inside."""

    def __enter__(self) -> None:
        import contextlib

        self._to = contextlib.redirect_stdout(io.StringIO())
        self._to.__enter__()

    def __exit__(self, *error: Sequence[Any]) -> None:
        self._to.__exit__(*error)
