"""Kill every kind of work at random moments, again and again, and see that nothing was lost.

    python tests/reliability/kills.py --kills 60 --out kills.json

For each kind of work (see victim.py) an undisturbed run is done first. Then, directory by
directory, the same work is begun, killed with SIGKILL a few times, and left to end. After every
kill all files must be whole; in the end all weights, histories, metrics and files must be bitwise
those of the undisturbed run. Moments are drawn in three ways: by the clock, shortly after some
epochs, and in the middle of writing a file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

ALONE = ("adam", "lbfgs", "bpinn", "unlearning", "study")
WITH_WORKERS = ("processes", "cluster")
POINTS = ("open", "half", "flushed", "renamed")
_VICTIM = Path(__file__).with_name("victim.py")


@dataclass(frozen=True)
class Ended:
    """How a child ended: what it did before, and how often something was killed."""

    digest: str | None
    writes: int
    moments: int
    seconds: float
    killed: int
    code: int
    said: str = ""


@dataclass
class Tally:
    """What became of one kind of work.

    Arguments:
        kills: kills that hit something running.
        runs: directories that were killed in and then left to end.
        by: kills by how their moment was drawn.
        different: runs that ended otherwise than the undisturbed one.
        damaged: files that a kill left damaged.
        partial: unfinished temporary files that were still there in the end.
        failures: what was said where a run failed.
    """

    kills: int = 0
    runs: int = 0
    by: Counter = field(default_factory=Counter)
    different: int = 0
    damaged: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.different or self.damaged or self.partial or self.failures)


class Server:
    """A process of victim.py that forks a child for every piece of work."""

    def __init__(self, cache: Path):
        environment = {
            **os.environ,
            # Workers begin when they are needed, and must find what the study itself was.
            "PYTHONPATH": os.pathsep.join([str(_copied(cache.parent)), *_told("PYTHONPATH")]),
            # A kill then costs the work that it interrupts, and not a compilation too.
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(_VICTIM)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        # The first line comes once everything is imported.
        assert self._process.stdout.readline().strip() == "ready"

    def run(self, work: str, directory: Path, doom: Doom | None = None) -> Ended:
        """Have a piece of work done, or begun."""
        doom = doom or Doom()
        order = {"work": work, "directory": str(directory), "fate": doom.fate}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        begun, digest, writes, moments, said = time.monotonic(), None, 0, 0, ""
        for line in self._lines():
            word, *rest = line.split(maxsplit=1)
            if word == "child":
                doom.child(int(rest[0]))
            elif word == "worker":
                doom.worker(int(rest[0]))
            elif word == "moment":
                moments += 1
                doom.moment(moments)
            elif word == "done":
                digest, count = rest[0].split()
                writes = int(count)
                doom.over()
            elif word == "failed":
                said = rest[0]
            elif word == "ended":
                doom.over()
                code = int(rest[0])
                killed = doom.kills + (bool(doom.fate) and code == -signal.SIGKILL)
                seconds = time.monotonic() - begun
                return Ended(digest, writes, moments, seconds, killed, code, said)
        raise RuntimeError("the victim's server is gone")

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def _lines(self) -> Iterator[str]:
        while line := self._process.stdout.readline():
            yield line


def _copied(root: Path) -> Path:
    """A folder with the package as it is now, whoever edits it meanwhile."""
    found = importlib.util.find_spec("unpinn")
    target = root / "package"
    if not target.exists():
        shutil.copytree(Path(found.origin).parent, target / "unpinn")
    return target


def _told(name: str) -> list[str]:
    return [os.environ[name]] if os.environ.get(name) else []


class Doom:
    """When to kill what.

    Arguments:
        fate: the child kills itself there, see victim.py.
        after: seconds after the child (or worker) began.
        moments: kill after so many moments, and a little.
        workers: kill so many workers instead of the child, each `after` seconds from its start.
    """

    def __init__(
        self,
        fate: tuple[str, int] | None = None,
        after: float | None = None,
        moments: int | None = None,
        little: float = 0.0,
        workers: int = 0,
    ):
        self.fate, self._after, self._moments, self._little = fate, after, moments, little
        self._workers, self.kills, self._over = workers, 0, False
        self._child = 0
        self._lock = threading.Lock()

    def child(self, process: int) -> None:
        self._child = process
        if self._after is not None and not self._workers:
            self._later(self._after, process)

    def worker(self, process: int) -> None:
        if self._workers > 0 and self._after is not None:
            self._workers -= 1
            self._later(self._after, process)

    def moment(self, count: int) -> None:
        if count == self._moments:
            time.sleep(self._little)
            self._kill(self._child)

    def over(self) -> None:
        with self._lock:
            self._over = True

    def _later(self, seconds: float, process: int) -> None:
        timer = threading.Timer(seconds, self._kill, (process,))
        timer.daemon = True
        timer.start()

    def _kill(self, process: int) -> None:
        with self._lock:
            if self._over:
                return
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                return
            self.kills += 1


def attack(
    server: Server, work: str, kills: int, root: Path, seed: int, each: int = 3
) -> tuple[Tally, Ended]:
    """Kill one kind of work so many times, `each` times in every directory."""
    chance = random.Random(f"{work} {seed}")
    # The first run fills the cache of compiled programs, the second tells how long one takes.
    server.run(work, root / "first")
    whole = server.run(work, root / "whole")
    tally = Tally()
    if whole.digest is None:
        raise RuntimeError(f"{work} does not even end undisturbed: {whole.said}")
    # What fails again and again says no more the tenth time.
    while tally.kills < kills and len(tally.failures) < 5:
        directory = root / f"killed{tally.runs}"
        end = whole
        for _ in range(min(each, kills - tally.kills)):
            how, doom = _drawn(work, whole, chance)
            end = server.run(work, directory, doom)
            tally.kills += end.killed
            tally.by[how] += end.killed
            tally.damaged += damaged(directory)
            if end.said:
                tally.failures.append(end.said)
            if end.digest is not None:
                break
        if end.digest is None or end is whole:
            end = server.run(work, directory)
        if end.digest is None:
            tally.failures.append(end.said or f"ended with code {end.code}")
        else:
            tally.different += end.digest != whole.digest
        tally.damaged += damaged(directory)
        tally.partial += [str(p) for p in directory.rglob(".*.partial")]
        tally.runs += 1
        if tally.good:
            shutil.rmtree(directory, ignore_errors=True)
    return tally, whole


def _drawn(work: str, whole: Ended, chance: random.Random) -> tuple[str, Doom]:
    """A way to be killed, and when."""
    if work in WITH_WORKERS:
        if work == "processes" and chance.random() < 0.25:
            return "the study itself", Doom(after=chance.uniform(0.5, whole.seconds))
        # A worker needs a while to import everything, in which nothing can be lost.
        return "worker", Doom(after=chance.uniform(0.5, 1.2) * whole.seconds, workers=2)
    how = chance.choice(("clock", "moment", "write"))
    if how == "clock":
        return how, Doom(after=chance.uniform(0.0, whole.seconds))
    if how == "moment":
        count = chance.randint(1, max(1, whole.moments))
        return how, Doom(moments=count, little=chance.choice((0.0, 0.002, 0.02)))
    return how, Doom(fate=(chance.choice(POINTS), chance.randint(1, max(1, whole.writes))))


def damaged(directory: Path) -> list[str]:
    """The files under a directory that cannot be read to their end."""
    return [f"{path}: {error}" for path in sorted(directory.rglob("*")) if (error := _fault(path))]


def _fault(path: Path) -> str:
    import pyarrow.parquet
    from safetensors import safe_open

    if path.name.startswith(".") or not path.is_file() or "dask" in path.parts:
        return ""
    try:
        if path.suffix == ".safetensors":
            with safe_open(str(path), "np") as file:
                for name in file.keys():  # noqa: SIM118
                    file.get_tensor(name)
        elif path.suffix == ".json":
            json.loads(path.read_bytes())
        elif path.suffix == ".parquet":
            pyarrow.parquet.read_table(path)
        elif path.suffix == ".csv" and not path.read_bytes().endswith(b"\n"):
            return "has no last line"
        elif path.suffix == ".html" and "</html>" not in path.read_text("utf-8")[-20:]:
            return "has no end"
    except FileNotFoundError:
        # A worker that survived has renamed or removed it meanwhile.
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=60, help="in all")
    parser.add_argument("--work", default=",".join((*ALONE, *WITH_WORKERS)))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=3, help="kills in one directory")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path, help="where to work; a folder that is removed if not")
    asked = parser.parse_args()
    works = asked.work.split(",")
    root = asked.keep or Path(tempfile.mkdtemp(prefix="unpinn-kills-"))
    server = Server(root / "cache")
    table, good = {}, True
    for number, work in enumerate(works):
        share = asked.kills * (number + 1) // len(works) - asked.kills * number // len(works)
        begun = time.monotonic()
        tally, whole = attack(server, work, share, root / work, asked.seed, asked.each)
        good = good and tally.good
        table[work] = {**asdict(tally), "by": dict(tally.by), "undisturbed": asdict(whole)}
        table[work]["seconds"] = round(time.monotonic() - begun, 1)
        told = f"{tally.kills} kills in {tally.runs} runs ({dict(tally.by)})"
        print(f"{work}: {told}, {'nothing lost' if tally.good else tally}", flush=True)
    server.close()
    total = sum(entry["kills"] for entry in table.values())
    print(f"{total} kills, {'all survived' if good else 'not all survived'}")
    if asked.out:
        content = {"kills": total, "seed": asked.seed, "survived": good, "work": table}
        asked.out.write_text(json.dumps(content, indent=2) + "\n")
    if asked.keep is None and good:
        shutil.rmtree(root, ignore_errors=True)
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
