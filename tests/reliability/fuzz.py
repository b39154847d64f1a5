"""Give every reader and loader damaged files, and see that it reads or refuses them in a sentence.

    python tests/reliability/fuzz.py --inputs 100000 --out fuzz.json
    python tests/reliability/fuzz.py --readers csv --first 4711 --inputs 1

An input is a valid file with some damage (see mutations.py), drawn by the reader's name, the seed
and the input's number alone, so that any can be tried again. Reading happens in a child process:
one that dies, hangs or takes too much memory is a failure, as is every error but `UserError`.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# An input is a few thousand bytes: nothing that is done with it may take more than this.
MOST_SECONDS, MOST_BYTES = 30, 512 << 20
_LIMIT = 6 << 30


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    inputs: int = 0
    read: int = 0
    refused: int = 0
    failures: dict[str, list[int]] = field(default_factory=dict)
    seconds: float = 0.0
    megabytes: float = 0.0

    def add(self, number: int, outcome: str) -> None:
        """Count an input."""
        self.inputs += 1
        if outcome in ("read", "refused"):
            setattr(self, outcome, getattr(self, outcome) + 1)
        else:
            self.failures.setdefault(
                re.sub(r"0x[0-9a-f]+|(?<!:)\b\d+", "#", outcome)[:300], []
            ).append(number)


class _Hang(BaseException):
    """An input took too long."""


def fuzz(reader: Any, first: int, count: int, seed: int, root: Path) -> Tally:
    """Try so many inputs of a reader, in children of which each does what the last one left."""
    tally, begun = Tally(), time.monotonic()
    counter = mmap.mmap(-1, 8)
    done, end = first, first + count
    while done < end:
        reading, writing = os.pipe()
        counter[:] = struct.pack("q", done)
        child = os.fork()
        if not child:
            _child(reader, range(done, end), seed, root, counter, reading, writing)
        os.close(writing)
        with os.fdopen(reading) as answers:
            for line in answers:
                if line.startswith("memory "):
                    tally.megabytes = max(tally.megabytes, float(line.split()[1]))
                    continue
                number, outcome = line.rstrip("\n").split(" ", 1)
                tally.add(int(number), outcome)
        _, status = os.waitpid(child, 0)
        reached = struct.unpack("q", counter[:])[0]
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            break
        # Which input it was at when it died is the one that is not counted yet.
        tally.add(reached, f"the process ended with code {code}")
        done = reached + 1
    tally.seconds = round(time.monotonic() - begun, 1)
    return tally


def damaged(reader: Any, number: int, seed: int, root: Path) -> tuple[Path, Path, bytes]:
    """The number-th input: the valid folder, the file in it, and what the file is to hold."""
    kinds = reader.kinds(root)
    chance = random.Random(f"{reader.name} {seed} {number}")
    kind = chance.choice(kinds)
    victim = chance.choice(reader.victims(kind))
    others = [path.read_bytes() for path in reader.victims(chance.choice(kinds))]
    content = reader.damage[victim.suffix](chance, victim.read_bytes(), others)
    return kind, victim.relative_to(kind), content


def _child(reader, numbers: range, seed: int, root: Path, counter, reading: int, writing: int):
    os.close(reading)
    code = 1
    try:
        with os.fdopen(writing, "w") as answers:
            for number, outcome in _tried(reader, numbers, seed, root, counter, answers):
                answers.write(f"{number} {outcome}\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _tried(reader, numbers, seed, root, counter, answers) -> Iterator[tuple[int, str]]:
    from readers import tried

    resource.setrlimit(resource.RLIMIT_AS, (_size() + _LIMIT, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _too_long)
    # Beside the valid folders, so that a run's problem file is found from both.
    work = Path(tempfile.mkdtemp(prefix=".work-", dir=root / reader.name / ".."))
    before = peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in numbers:
        counter[:] = struct.pack("q", number)
        kind, name, content = damaged(reader, number, seed, root)
        folder = work / kind.name
        if not folder.exists():
            shutil.copytree(kind, folder)
        (folder / name).write_bytes(content)
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        try:
            outcome = tried(reader, folder)
        except _Hang:
            outcome = f"took more than {MOST_SECONDS} s"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        (folder / name).write_bytes((kind / name).read_bytes())
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if (now - peak) * 1024 > MOST_BYTES:
            outcome = f"took {(now - peak) // 1024} megabytes"
        peak = now
        yield number, " ".join(outcome.split())
    answers.write(f"memory {(peak - before) / 1024:.0f}\n")
    shutil.rmtree(work)


def _too_long(*_: Any) -> None:
    raise _Hang


def _size() -> int:
    """Of this process's address space, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _prepare(readers: Any, root: Path) -> None:
    """Write all valid files, in a child, since JAX starts threads that a fork would lose."""
    child = os.fork()
    if not child:
        code = 1
        try:
            from readers import tried

            kinds = [(reader, kind) for reader in readers for kind in reader.kinds(root)]
            for reader, kind in kinds:
                if (outcome := tried(reader, kind, say=True)) != "read":
                    raise AssertionError(f"{reader.name}, {kind.name}: {outcome}")
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit("the valid files could not be made and read")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="over all readers")
    parser.add_argument("--readers", help="only these, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path, help="where the valid files are kept")
    asked = parser.parse_args()
    from readers import READERS

    chosen = [r for r in READERS if asked.readers is None or r.name in asked.readers.split(",")]
    root = asked.keep or Path(tempfile.mkdtemp(prefix="unpinn-fuzz-"))
    root.mkdir(parents=True, exist_ok=True)
    _prepare(chosen, root)
    whole, begun, table, given = sum(r.share for r in chosen), 0, {}, 0
    for reader in chosen:
        begun += reader.share
        count = asked.inputs * begun // whole - given
        given += count
        tally = fuzz(reader, asked.first, count, asked.seed, root)
        table[reader.name] = asdict(tally)
        rate = tally.inputs / max(tally.seconds, 0.1)
        print(
            f"{reader.name}: {tally.inputs} inputs, {tally.read} read, {tally.refused} refused, "
            f"{sum(map(len, tally.failures.values()))} failed; {rate:.0f} a second, "
            f"{tally.megabytes:.0f} megabytes", flush=True,
        )  # fmt: skip
        for outcome, numbers in tally.failures.items():
            print(f"  {len(numbers)} x {outcome} (input {numbers[0]})", flush=True)
    failures = Counter({n: sum(map(len, t["failures"].values())) for n, t in table.items()})
    total = sum(entry["inputs"] for entry in table.values())
    print(f"{total} inputs, {failures.total()} failures")
    if asked.out:
        content = {"inputs": total, "failures": failures.total(), "readers": table}
        asked.out.write_text(json.dumps(content, indent=2) + "\n")
    if asked.keep is None:
        shutil.rmtree(root, ignore_errors=True)
    raise SystemExit(bool(failures.total()))


if __name__ == "__main__":
    main()
