"""The text of a user's functions, as they wrote it."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any


def source_of(function: Callable[..., Any]) -> str:
    """A function's source, a lambda's alone without its surroundings; its name where there is none.

    >>> source_of(lambda u, alpha: u.tt + alpha**2 * u.xxxx)
    'lambda u, alpha: u.tt + alpha**2 * u.xxxx'
    """
    plain = _unwrapped(function)
    code = getattr(plain, "__code__", None)
    if not isinstance(code, CodeType):
        return _name(function)
    text = "".join(linecache.getlines(code.co_filename, getattr(plain, "__globals__", None)))
    found = _node(text, code)
    if found is None:
        return _name(function)
    segment = ast.get_source_segment(text, found, padded=True) or _name(function)
    return textwrap.dedent(segment).strip()


def _unwrapped(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    return getattr(function, "__func__", function)


def _name(function: Any) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    try:
        return f"{name}{inspect.signature(function)}"
    except (TypeError, ValueError):
        return str(name)


def _node(text: str, code: CodeType) -> ast.AST | None:
    """The lambda or function that code was compiled from: the smallest around its instructions."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    places = [
        (line, column)
        for line, _, column, _ in code.co_positions()
        # The first instruction of a function stands for the whole and tells no column.
        if line is not None and column is not None and (line, column) != (code.co_firstlineno, 0)
    ]
    wanted = ast.Lambda if code.co_name == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    best: Any = None
    for node in ast.walk(tree):
        if not isinstance(node, wanted):
            continue
        if isinstance(node, ast.FunctionDef) and node.name != code.co_name:
            continue
        begin, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        inside = all(begin <= place <= end for place in places)
        here = inside and first <= code.co_firstlineno <= (node.end_lineno or 0)
        if here and (best is None or _span(node) < _span(best)):
            best = node
    return best


def _span(node: Any) -> tuple[int, int]:
    lines = node.end_lineno - node.lineno
    return lines, node.end_col_offset - node.col_offset if lines == 0 else 0
