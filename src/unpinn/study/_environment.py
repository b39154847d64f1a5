"""What computed a run: versions, machine, cores, device, and a digest of the sources."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib import metadata, resources
from typing import Any

from unpinn._version import __version__
from unpinn.study._store import now

_LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "blackjax", "numpy", "scipy")
# The folders that decide numbers.
_NUMERICS = (
    "problem", "network", "training", "unlearning", "rivals", "evaluation", "benchmarks",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """This process, now."""
    import jax

    device = getattr(jax.config, "jax_default_device", None) or jax.devices()[0]
    return {
        "time": now(),
        "unpinn": __version__,
        "sources": sources_digest(),
        "python": platform.python_version(),
        "libraries": _versions(),
        "machine": machine(),
        "cores": cores(),
        "device": f"{device}",
    }


def cores() -> int:
    """On how many cores this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def machine() -> str:
    """The system and the processor, but not whose it is."""
    return f"{platform.system()} {platform.machine()}, {_processor()}"


@cache
def sources_digest() -> str:
    """Eight hexadecimal digits of the sources that decide numbers.

    >>> len(sources_digest())
    8
    """
    digest = hashlib.sha256()
    root = resources.files("unpinn")
    for folder in _NUMERICS:
        for item in sorted((root / folder).iterdir(), key=lambda item: item.name):
            if item.name.endswith(".py"):
                digest.update(item.name.encode() + b"\0" + item.read_bytes())
    return digest.hexdigest()[:8]


@cache
def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or "unknown processor"
