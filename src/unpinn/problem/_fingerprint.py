"""A digest of a problem's statement, the code of its functions included."""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


def fingerprint(statement: Any) -> str:
    """Sixteen hexadecimal digits that tell statements apart.

    The digest is the same in every process that runs the same Python version; it follows a
    function's code, constants, defaults, closure and the globals that it reads.

    >>> fingerprint(lambda u: u.x) == fingerprint(lambda u: u.x)
    True
    >>> fingerprint(lambda u: u.x) == fingerprint(lambda u: u.t)
    False
    """
    return hashlib.sha256(_describe(statement, ()).encode()).hexdigest()[:16]


def _describe(value: Any, inside: tuple[int, ...]) -> str:
    """A text that two values share only if they mean the same, free of memory addresses."""
    if isinstance(value, _ATOMS):
        return repr(value)
    if id(value) in inside:
        return f"<{len(inside) - inside.index(id(value))} levels up>"
    describe = functools.partial(_describe, inside=(*inside, id(value)))
    if isinstance(value, Mapping):
        items = (f"{describe(key)}: {describe(item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(describe, value))})"
    if isinstance(value, (set, frozenset)):
        # Sets of strings are ordered by a hash that differs from process to process.
        return f"{{{', '.join(sorted(map(describe, value)))}}}"
    if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
        return _name(value)
    if hasattr(value, "__array__"):
        return _describe_array(np.asarray(value), describe)
    if isinstance(value, types.CodeType):
        return _describe_code(value, describe)
    if isinstance(value, functools.partial):
        return f"partial{describe((value.func, value.args, value.keywords))}"
    if isinstance(value, types.MethodType):
        return f"method{describe((value.__func__, value.__self__))}"
    if isinstance(value, types.FunctionType):
        return f"function{describe(_parts(value))}"
    if callable(getattr(value, "__wrapped__", None)):
        return f"{_name(type(value))}{describe(value.__wrapped__)}"
    return f"{_name(type(value))}{describe(_state(value))}"


def _describe_array(array: np.ndarray, describe: Callable[[Any], str]) -> str:
    if array.dtype == object:
        return f"array{array.shape}{describe(array.tolist())}"
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"array{array.shape}{array.dtype.str}{content}"


def _describe_code(code: types.CodeType, describe: Callable[[Any], str]) -> str:
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = (arguments, code.co_names, code.co_freevars)
    return f"code{describe((code.co_code, code.co_consts, names))}"


def _parts(function: types.FunctionType) -> tuple[Any, ...]:
    closure = [_content(cell) for cell in function.__closure__ or ()]
    read = {
        name: _reference(function.__globals__[name], function)
        for name in sorted(set(_globals_read(function.__code__)))
        if name in function.__globals__
    }
    return function.__code__, function.__defaults__, function.__kwdefaults__, closure, read


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return "<empty>"


def _globals_read(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_read(constant)


def _reference(value: Any, reader: types.FunctionType) -> Any:
    """A library's function is known by its name; one of the reader's own file by its code."""
    module = getattr(value, "__module__", None)
    if callable(value) and hasattr(value, "__qualname__") and module != reader.__module__:
        return _name(value)
    return value


def _state(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return getattr(value, "__dict__", {})


def _name(value: Any) -> str:
    own = getattr(value, "__qualname__", None) or getattr(value, "__name__", "")
    return f"<{getattr(value, '__module__', '')}.{own}>"
