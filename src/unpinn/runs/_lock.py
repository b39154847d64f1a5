"""One process at a time in a run directory."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unpinn._errors import UserError


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a directory's lock; the system frees it with the process, however that ends.

    The file names the process that holds it. One that was left behind by a killed process is
    no lock, since the system's own lock on it is gone.
    """
    path = directory / "lock"
    handle = _acquire(path)
    try:
        yield
    finally:
        # Removed while still held: whoever waits for it finds that the file is no longer this one.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _acquire(path: Path) -> int:
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"cannot write in {path.parent}: {reason}") from None
        if not _try_lock(handle):
            holder = _holder(path)
            os.close(handle)
            raise UserError(
                f"{path.parent} is in use by {holder}; wait for it, or choose another directory"
            )
        if _is_still(path, handle):
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            return handle
        os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    """Whether the path leads to the file that was locked, and not to a newer one."""
    try:
        there = os.stat(path)
    except OSError:
        return False
    mine = os.fstat(handle)
    return (there.st_ino, there.st_dev) == (mine.st_ino, mine.st_dev)


def _holder(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()[:200] or "another process"
    except OSError:
        return "another process"


def _try_lock(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return _try_lock_windows(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_lock_windows(handle: int) -> bool:
    import msvcrt

    locking: Any = msvcrt
    try:
        # A byte far beyond the content, which others must still be able to read.
        os.lseek(handle, 1 << 20, os.SEEK_SET)
        locking.locking(handle, locking.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)
    except OSError:
        return False
    return True
