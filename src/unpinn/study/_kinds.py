"""Of what kind a setting of a study file must be: a number, a text, true or false.

Whether a value of the right kind can work is judged by what takes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unpinn.study._source import Place

_NUMBER, _WHOLE, _FLAG, _TEXT = "a number", "a whole number", "true or false", "a text"
_LAYERS, _SETTINGS = "a whole number or a list of them", "a table of settings"

KINDS: Mapping[str, Mapping[str, str]] = {
    "noise": {"high": _NUMBER, "low": _NUMBER, "share": _NUMBER, "kind": _TEXT},
    "unlearning": {
        "share": _NUMBER, "threshold": _NUMBER, "cut": _NUMBER, "soft": _FLAG,
        "fraction": _NUMBER, "steps": _WHOLE, "layers": _LAYERS, "criterion": _TEXT,
        "fold": _FLAG, "constants": _FLAG, "epsilon": _NUMBER, "least": _WHOLE, "guard": _FLAG,
        "single": _FLAG, "prune": _FLAG, "physics": _NUMBER, "residual_weight": _NUMBER,
        "rounds": _WHOLE, "stiffening": _NUMBER, "firm": _NUMBER, "accept": _FLAG,
        "tolerance": _NUMBER, "adam": _WHOLE, "lbfgs": _WHOLE,
    },
    "network": {
        "kind": _TEXT, "width": _WHOLE, "depth": _WHOLE, "activation": _TEXT, "options": _SETTINGS,
    },
}  # fmt: skip
"""For each group of settings the kind of every one of them."""


def check_kinds(group: str, given: Mapping[str, Any], place: Place) -> None:
    """Refuse a setting whose value is of another kind."""
    for name, value in given.items():
        _check(name, value, KINDS[group].get(name), place)


def check_option_kinds(
    method: str, given: Mapping[str, Any], usual: Mapping[str, Any], place: Place
) -> None:
    """Refuse an option of a method whose value is of another kind than the usual one."""
    for name, value in given.items():
        known = usual[name]
        kind = _FLAG if isinstance(known, bool) else _TEXT if isinstance(known, str) else _NUMBER
        _check(name, value, kind, place, f" of {method}")


def check_flag(name: str, value: Any, place: Place) -> bool:
    """A setting that is true or false."""
    _check(name, value, _FLAG, place)
    return bool(value)


def _check(name: str, value: Any, kind: str | None, place: Place, of: str = "") -> None:
    if kind is not None and not _is(value, kind):
        raise place.mistake(f"{name}{of} must be {kind}, not {value!r}", name)


def _is(value: Any, kind: str) -> bool:
    if kind == _FLAG:
        return isinstance(value, bool)
    if kind == _TEXT:
        return isinstance(value, str)
    if kind == _SETTINGS:
        return isinstance(value, Mapping)
    if kind == _LAYERS and isinstance(value, list):
        return all(_is(item, _WHOLE) for item in value)
    # To Python true and false are numbers, to whoever writes a study they are not.
    if isinstance(value, bool):
        return False
    if kind == _NUMBER:
        return isinstance(value, (int, float)) and math.isfinite(value)
    return isinstance(value, int)
