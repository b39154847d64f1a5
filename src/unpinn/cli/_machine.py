"""What this process asks of the machine, before anything is computed."""

from __future__ import annotations

import os
import sys

from unpinn._errors import UserError

_THREADS = (
    "NPROC", "PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
)  # fmt: skip


def prepare(threads: int | None = None) -> None:
    """Keep compiled programs from one run to the next, and to so many threads.

    JAX reads both from the environment once. Where it is loaded already, this is not the command
    line's own process, and its settings are left alone.
    """
    if threads is not None and threads < 1:
        raise UserError(f"--threads must be 1 or more, not {threads}")
    if "jax" in sys.modules:
        return
    if threads is not None:
        for name in _THREADS:
            os.environ[name] = str(threads)
        if threads == 1:
            flags = os.environ.get("XLA_FLAGS", "")
            os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    import pooch

    os.environ.setdefault(
        "JAX_COMPILATION_CACHE_DIR", os.path.join(pooch.os_cache("unpinn"), "jax")
    )
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")
