"""Libraries that are not installed with the package: one sentence where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from unpinn._errors import UserError


def need(module: str, library: str, extra: str) -> None:
    """Refuse to go on without a library.

    Arguments:
        module: the name by which it is imported.
        library: what it is called.
        extra: what to install.
    """
    if find_spec(module) is None:
        raise UserError(f"this needs {library}, which is not installed; install {extra}")
