"""Which problem files the user has run: their code may be run again without being asked for.

A run's directory names its problem file. Whoever hands such a directory to somebody else could
name any file in it, so that a file is run on a directory's word only if this user has run it
before, at that place and with exactly that text.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from unpinn._errors import UserError
from unpinn._files import write_text


def remember(problem_file: Path) -> None:
    """The user runs this problem file."""
    # Where nothing can be kept, the file has to be named again, and nothing else is lost.
    with suppress(OSError, UserError):
        mark = _mark(problem_file)
        mark.parent.mkdir(parents=True, exist_ok=True)
        if not mark.exists():
            write_text(mark, "")


def remembered(problem_file: Path) -> bool:
    """Whether the user has run it as it is."""
    with suppress(OSError):
        return _mark(problem_file).exists()
    return False


def _mark(problem_file: Path) -> Path:
    import pooch

    place = str(problem_file.resolve()).encode()
    digest = hashlib.sha256(place + b"\0" + problem_file.read_bytes())
    return Path(pooch.os_cache("unpinn")) / "problems" / digest.hexdigest()
