"""Refusing settings that cannot work, by name, before anything is trained."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from unpinn._errors import UserError
from unpinn.rivals._method import Task


def whole(task: Task, method: str, name: str, least: int) -> int:
    """An option that must be a whole number of at least so many."""
    value = task.options[name]
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise UserError(
            f"{method} needs a whole number of {least} or more as {name!r}, not {value!r}"
        )
    return int(value)


def positive(task: Task, method: str, name: str) -> float:
    """An option that must be a number above zero."""
    value = _number(task.options[name])
    if not value > 0:
        raise UserError(
            f"{method} needs a number above zero as {name!r}, not {task.options[name]!r}"
        )
    return value


def share(task: Task, method: str, name: str, *, one: bool = False) -> float:
    """An option that must be between 0 and 1; `one` says whether it may be 1."""
    value = _number(task.options[name])
    if not (0 < value < 1 or (one and value == 1)):
        ends = "(0, 1]" if one else "(0, 1)"
        raise UserError(
            f"{method} needs a number in {ends} as {name!r}, not {task.options[name]!r}"
        )
    return value


def flag(task: Task, method: str, name: str) -> bool:
    """An option that must be true or false."""
    value = task.options[name]
    if not isinstance(value, bool):
        raise UserError(f"{method} needs true or false as {name!r}, not {value!r}")
    return value


def choice(task: Task, method: str, name: str, known: tuple[str, ...]) -> str:
    """An option that must be one of a few words."""
    value = task.options[name]
    if value not in known:
        raise UserError(f"{method} needs one of {', '.join(known)} as {name!r}, not {value!r}")
    return value


def optional_positive(task: Task, method: str, name: str) -> float | None:
    """An option that may be left out (None), or else must be a number above zero."""
    return None if task.options[name] is None else positive(task, method, name)


def _number(value: Any) -> float:
    """A finite number as Python's own, and NaN for anything else."""
    fits = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if fits else math.nan
