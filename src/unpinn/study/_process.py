"""A process that does one run after another, as seen from the study that owns it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

from unpinn.study._perform import BUSY, FAILED, Job, Outcome

# A run may go down with its process so many times before it counts as failed.
_TRIES = 3
_THREADS = (
    "NPROC", "PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
)  # fmt: skip


class WorkerProcess:
    """A worker process: started when first needed, and again when it has died.

    Jobs and outcomes are lines of JSON on its pipes. It ends with the pipe, so that nothing is
    left behind where the study itself is killed.

    Arguments:
        cores: that it keeps to; all where there are none.
    """

    def __init__(self, cores: tuple[int, ...] = ()):
        self._cores = cores
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    @property
    def process_id(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._process is None else self._process.pid

    def perform(self, job: Job) -> Outcome:
        """Have a job done; one that takes the process down with it is begun again where it was."""
        for _ in range(_TRIES):
            if self._stopped:
                return Outcome(job.address, BUSY, reason="interrupted")
            process = self._running()
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(job.text() + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except (BrokenPipeError, OSError):
                answer = ""
            if answer.endswith("\n"):
                return Outcome(**json.loads(answer))
            code = self._gone(process)
        reason = (
            f"its process {_ended(code)} {_TRIES} times; it may have run out of memory, so give it "
            "fewer neighbours with --workers"
        )
        return Outcome(job.address, FAILED, reason=reason)

    def stop(self) -> None:
        """Have it keep a checkpoint and end."""
        self._stopped = True
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            cores = ",".join(map(str, self._cores))
            self._process = subprocess.Popen(
                [sys.executable, "-m", "unpinn.study._worker", cores],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                env=worker_environment(len(self._cores)),
                # Ctrl-C in a terminal reaches the study, which passes it on once it is ready to.
                start_new_session=True,
            )  # fmt: skip
        return self._process

    def _gone(self, process: subprocess.Popen[str]) -> int:
        self._process = None
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        return process.wait()


def worker_environment(cores: int) -> dict[str, str]:
    """This process's environment, with as many threads as cores for every library that has any."""
    variables = dict(os.environ)
    # The worker imports what this process has imported, wherever that lies.
    paths = [path for path in sys.path if path]
    variables["PYTHONPATH"] = os.pathsep.join(paths)
    if cores:
        for name in _THREADS:
            variables[name] = str(cores)
        if cores == 1:
            flag = "--xla_cpu_multi_thread_eigen=false"
            flags = variables.get("XLA_FLAGS", "")
            variables["XLA_FLAGS"] = flags if flag in flags else f"{flags} {flag}".strip()
    # Processes that share an accelerator must not each take its whole memory.
    variables.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    return variables


def _ended(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with code {code}"
