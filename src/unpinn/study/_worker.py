"""What a worker process does: read a job, do it, say what became of it, until the pipe closes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from typing import TextIO

from unpinn.runs import Posed
from unpinn.study._perform import Job, perform


def serve(jobs: TextIO, answers: TextIO) -> None:
    """Do jobs until there are no more."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs, lines), daemon=True).start()
    known: dict[str, Posed] = {}
    before = ""
    while True:
        job = Job.of(lines.get())
        problem = job.run["configuration"]["problem"]
        if before not in ("", problem):
            _forget(known)
        before = problem
        outcome = perform(job, known=known)
        answers.write(json.dumps(vars(outcome)) + "\n")
        answers.flush()


def _listen(jobs: TextIO, lines: queue.SimpleQueue[str]) -> None:
    for line in jobs:
        lines.put(line)
    # Whoever sent the jobs is gone, and with it the need for what is under way. Its checkpoints
    # are files, so nothing is lost by leaving at once.
    os._exit(0)


def _forget(known: dict[str, Posed]) -> None:
    """Free what the last problem has compiled; over a long study it would fill the memory."""
    import jax

    known.clear()
    jax.clear_caches()


def main() -> None:
    """Serve on the standard pipes."""
    if len(sys.argv) > 1 and sys.argv[1] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in sys.argv[1].split(",")})
    # A study that was begun in the background ignores the signal, but its workers must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Whatever is printed along the way must not end up among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(KeyboardInterrupt):
        serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
