"""A user's own Python file that states a problem, run once and looked into.

A problem file is Python code of the user's own and is run as such: open only what you trust.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from unpinn._errors import UserError
from unpinn.problem import Observations, Problem
from unpinn.readings._read import read_with_report
from unpinn.readings._reading_report import ReadingReport

_LARGEST = 4 << 20
# What a problem file may say about its data, handed on to `read_observations`.
_READING_NAMES = ("columns", "sigma", "sensor", "duplicates", "outside", "missing", "origin")


class ProblemFileError(UserError):
    """A problem file could not be used, told in one sentence.

    Where the user's own code raised, the cause is that exception, with a traceback that begins in
    the user's file.
    """

    @property
    def user_traceback(self) -> str:
        """The user's own traceback as Python prints it, "" where their code did not raise."""
        cause = self.__cause__
        if cause is None:
            return ""
        return "".join(traceback.format_exception(type(cause), cause, cause.__traceback__))


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a problem file says.

    Arguments:
        path: the file.
        problem: its `problem`.
        observations: its `observations`, where it brings the readings themselves, or None.
        protocol: its `protocol` (how to train), or None.
        recipe: its `recipe` (how to unlearn), or None.
        units: its `units`: for coordinates, fields and unknowns the unit the problem is stated in.
        read: its own reader, a function from a path and the problem to observations, or None.
        options: what it says of its data: columns, sigma, sensor, duplicates, outside, missing,
            origin.
        data: the data file that it names, taken from its own folder, or None.
    """

    path: Path
    problem: Problem
    observations: Observations | None = None
    protocol: Any = None
    recipe: Any = None
    units: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[..., Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    data: Path | None = None

    def read_data(self, data: Any = None) -> tuple[Observations, ReadingReport]:
        """Readings from a data file, and what became of its rows.

        Arguments:
            data: the file; unless told, the one that the problem file names, or the readings that
                it brings itself.
        """
        if data is None and self.observations is not None:
            return self.observations, self._report(self.path.name, self.observations)
        data = self.data if data is None else Path(data)
        if data is None:
            raise UserError(
                f"{self.path.name} brings no readings; say which file holds them (--data FILE)"
            )
        if self.read is None:
            return read_with_report(data, self.problem, units=self.units, **self.options)
        arguments = (data, self.problem)[: _arguments(self.read)]
        found = _run(self.path, f"read in {self.path.name}", lambda: self.read(*arguments))  # type: ignore[misc]
        if not isinstance(found, Observations):
            raise ProblemFileError(
                f"read in {self.path.name} must give Observations (see unpinn.observe), not "
                f"{_kind(found)}"
            )
        return found, self._report(data.name, found)

    def _report(self, source: str, found: Observations) -> ReadingReport:
        names = (*self.problem.coordinates, *found.quantities)
        count = 0 if found.sensor is None else len(set(found.sensor.tolist()))
        return ReadingReport(
            source, f"as {self.path.name} reads it", len(found), len(found),
            {name: name for name in names}, sensors=count,
        )  # fmt: skip


def load_problem_file(path: Any) -> ProblemFile:
    """Run a user's Python file and take `problem` from it, with whatever else it says.

    The file's code is run, so open only files that you trust. A mistake in it is told in one
    sentence; where its own code raised, the error carries the user's own traceback.

    Arguments:
        path: the file. It sets `problem`, and may set `protocol`, `recipe`, `units`, `columns`,
            `sigma`, `sensor`, `duplicates`, `outside`, `missing`, `origin`, `data`, `observations`,
            and define a function `read(path, problem)` of its own.
    """
    path = Path(path)
    source = _source(path)
    module = _module(path, source)
    with _beside(path):
        _run(path, path.name, lambda: module.__loader__.exec_module(module))  # type: ignore[union-attr]
    names = vars(module)
    problem = names.get("problem")
    if not isinstance(problem, Problem):
        found = "sets no 'problem'" if problem is None else f"sets problem to {_kind(problem)}"
        raise ProblemFileError(f"{path.name} {found}; it must say problem = unpinn.Problem(...)")
    units = _mapping(path, names, "units")
    _check_kinds(path, names)
    digest = hashlib.sha256(source).hexdigest()
    about: dict[str, Any] = {"file": path.name, "sha256": digest, "units": _texts(units)}
    if isinstance(module.__doc__, str) and module.__doc__.strip():
        # The first paragraph says what the problem is about; reports begin with it.
        about["summary"] = " ".join(module.__doc__.strip().split("\n\n")[0].split())[:400]
    named = problem if problem.name != "problem" else replace(problem, name=path.stem)
    return ProblemFile(
        path,
        replace(named, source={**problem.source, **about}),
        names.get("observations"),
        names.get("protocol"),
        names.get("recipe"),
        units,
        names.get("read"),
        {name: names[name] for name in _READING_NAMES if names.get(name) is not None},
        path.parent / names["data"] if isinstance(names.get("data"), str) else None,
    )


def _source(path: Path) -> bytes:
    if path.suffix != ".py":
        raise ProblemFileError(f"{path} is no Python file; a problem file ends in .py")
    if not path.exists():
        raise ProblemFileError(
            f"there is no problem file {path}; `unpinn new {path}` writes a starter"
        )
    try:
        if path.stat().st_size > _LARGEST:
            raise ProblemFileError(f"{path} is too large for a problem file")
        return path.read_bytes()
    except OSError as error:
        told = (error.strerror or str(error)).lower()
        raise ProblemFileError(f"cannot read {path}: {told}") from None


class _Loader(SourceFileLoader):
    """Runs the bytes that were read and hashed, and leaves no compiled file behind."""

    def __init__(self, name: str, path: str, source: bytes):
        super().__init__(name, path)
        self._bytes = source

    def get_code(self, fullname: str) -> Any:
        return compile(self._bytes, self.path, "exec", dont_inherit=True)


def _module(path: Path, source: bytes) -> ModuleType:
    # The name follows the file alone, so that a problem's fingerprint is the same everywhere.
    name = "unpinn_problem_" + re.sub(r"\W", "_", path.stem)
    spec = ModuleSpec(name, _Loader(name, str(path.resolve()), source), origin=str(path))
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    return module


@contextmanager
def _beside(path: Path):
    """Modules beside the problem file can be imported while it runs."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _run(path: Path, doing: str, work: Callable[[], Any]) -> Any:
    """Run the user's own code; whatever it raises becomes one sentence, with it as the cause."""
    try:
        return work()
    except ProblemFileError:
        raise
    except UserError as error:
        # What the user's own residual raised stands behind the sentence about it.
        cause = error.__cause__ and _own(error.__cause__, path)
        raise ProblemFileError(f"{path.name}{_line(error, path, ', line {}')}: {error}") from cause
    except SyntaxError as error:
        inside = error.filename is None or Path(error.filename).name == path.name
        line = f"line {error.lineno}: " if error.lineno else ""
        where = line if inside else f"{error.filename}, {line}"
        cause = error.with_traceback(None)
        raise ProblemFileError(f"{doing} is not valid Python ({where}{error.msg})") from cause
    except SystemExit as error:
        raise ProblemFileError(f"{doing} left Python (exit code {error.code})") from None
    except Exception as error:
        told = str(error).strip().splitlines()
        words = f"{type(error).__name__}: {told[0][:300]}" if told else type(error).__name__
        line = _line(error, path, " (line {})")
        raise ProblemFileError(f"{doing} raised {words}{line}") from _own(error, path)


def _line(error: BaseException, path: Path, wording: str) -> str:
    """The last line of the user's own file on the way to an error, "" where it was not on it."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == path.resolve()
    ]
    return wording.format(lines[-1]) if lines else ""


def _own(error: BaseException, path: Path) -> BaseException:
    """The error with its traceback cut to begin in the user's file."""
    place = error.__traceback__
    while place is not None and Path(place.tb_frame.f_code.co_filename) != path.resolve():
        place = place.tb_next
    return error.with_traceback(place or error.__traceback__)


def _arguments(function: Callable[..., Any]) -> int:
    """Whether a reader takes the path alone, or the path and the problem."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return 2
    return min(2, sum(parameter.kind in kinds for parameter in parameters))


def _mapping(path: Path, names: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = names.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ProblemFileError(
            f"{name} in {path.name} must be a mapping from names, such as {{'x': 'm'}}, not "
            f"{_kind(value)}"
        )
    return dict(value)


def _check_kinds(path: Path, names: Mapping[str, Any]) -> None:
    _mapping(path, names, "columns")
    read = names.get("read")
    if read is not None and not callable(read):
        raise ProblemFileError(
            f"read in {path.name} must be a function of a path and the problem, not {_kind(read)}"
        )
    # Types of later folders are known by what they can do.
    brought = names.get("observations")
    if brought is not None and not isinstance(brought, Observations):
        raise ProblemFileError(
            f"observations in {path.name} must be what unpinn.observe gives, not {_kind(brought)}"
        )
    for name, needs, example in (
        ("protocol", ("stages", "to_dict"), "unpinn.Protocol(...)"),
        ("recipe", ("rule", "schedule", "stages"), "unpinn.unlearning.default_recipe()"),
    ):
        value = names.get(name)
        if value is not None and not all(hasattr(value, need) for need in needs):
            raise ProblemFileError(
                f"{name} in {path.name} must be something like {example}, not {_kind(value)}"
            )


def _kind(value: Any) -> str:
    return f"{'an' if type(value).__name__[0] in 'aeiouAEIOU' else 'a'} {type(value).__name__}"


def _texts(units: Mapping[str, Any]) -> dict[str, str]:
    """The problem's unit of each name, for reports."""
    return {
        name: spec.rpartition("->")[2].strip() for name, spec in units.items()
        if isinstance(spec, str)
    }  # fmt: skip
