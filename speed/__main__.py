"""Time training against PyTorch with nested differentiation, one JSON line a case.

    python -m speed
    python -m speed --case pinv --rounds 30
    taskset -c 1 python -m speed --case beam

`ours_ms` and `theirs_ms` are the least time of an epoch over the rounds; the two take turns, so
that a busy machine slows both. `ratio` is ours over theirs. The `cpu` figures count processor time,
which another program's load disturbs less. Before timing, the losses of both must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from speed import _cases as cases


def compare(name: str, pair: Callable, target: float, rounds: int) -> dict:
    """Ours and theirs in turns, after seeing that both compute the same."""
    if find_spec("torch") is None:
        return {"case": name, "error": "PyTorch is missing: install the extra unpinn[speed]"}
    ours, theirs = pair()
    losses: list[float] = []
    first_ms, _ = cases.timed(lambda: losses.extend(ours.run(1)))
    losses += ours.run(9)
    cases.assert_same_losses(losses, theirs(10))
    (mine, mine_cpu), (other, other_cpu) = cases.best([ours.run, theirs], 3, rounds)
    return {
        "case": name,
        "ours_ms": round(mine, 2),
        "theirs_ms": round(other, 2),
        "ratio": round(mine / other, 3),
        "target_ratio": target,
        "ours_cpu_ms": round(mine_cpu, 2),
        "theirs_cpu_ms": round(other_cpu, 2),
        "compile_s": round(ours.compile_s, 2),
        "first_ms": round(first_ms, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def alone(name: str, make: Callable, target: float | None, rounds: int) -> dict:
    """Ours only."""
    ours = make()
    first_ms, _ = cases.timed(lambda: ours.run(1))
    [(steady, processors)] = cases.best([ours.run], 200, rounds)
    return {
        "case": name,
        "ours_ms": round(steady, 3),
        "target_ms": target,
        "ours_cpu_ms": round(processors, 3),
        "compile_s": round(ours.compile_s, 2),
        "first_ms": round(first_ms, 2),
        "load": round(os.getloadavg()[0], 1),
    }


DATA_ONLY = partial(cases.Ours, "heat", ("data",))
CASES: dict[str, Callable[[int], dict]] = {
    "import": lambda rounds: cases.import_case(min(rounds, 5)),
    "memory": lambda rounds: cases.memory_case(),
    "pinv": partial(compare, "pinv epoch", cases.pinv_pair, 0.30),
    "beam": partial(compare, "beam epoch", cases.beam_pair, 0.20),
    "data": partial(alone, "data-only epoch, 400 readings", DATA_ONLY, 0.6),
    "data64": partial(
        alone, "data-only epoch, 400 readings, float64", partial(DATA_ONLY, kind="float64"), None
    ),
    "stage": lambda rounds: cases.stage_case(100 * rounds),
    "heat": partial(alone, "heat epoch", partial(cases.Ours, "heat"), None),
    "heat64": partial(
        alone, "heat epoch, float64", partial(cases.Ours, "heat", kind="float64"), None
    ),
}


def main(arguments: list[str] | None = None) -> None:
    """Print a line for every case asked for."""
    parser = argparse.ArgumentParser(prog="python -m speed", description=__doc__.split("\n")[0])
    parser.add_argument("--case", action="append", choices=CASES, help="all unless told")
    parser.add_argument(
        "--rounds", type=int, default=12, help="turns of each program; 100 iterations of a stage"
    )
    options = parser.parse_args(arguments)
    for name in options.case or CASES:
        print(json.dumps(CASES[name](options.rounds)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
