"""A problem stated in a Python file of the user's own.

Such a file is code, and it is run. It is read only where a user names it; nothing that this
package has written leads to one being run.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn.problem import Observations, Problem
from unpinn.training import Protocol
from unpinn.unlearning import Recipe


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a problem file states.

    Arguments:
        problem: its `problem`.
        observations: its `observations`, if it has them.
        read: its `read(path)`, which gives observations, if it brings its own reader.
        protocol: its `protocol`, if it wants its own training.
        recipe: its `recipe`, if it wants its own unlearning.
    """

    problem: Problem
    observations: Observations | None = None
    read: Callable[..., Any] | None = None
    protocol: Protocol | None = None
    recipe: Recipe | None = None


_KINDS: dict[str, Any] = {
    "problem": Problem,
    "observations": Observations,
    "protocol": Protocol,
    "recipe": Recipe,
}


def load_problem_file(path: Any) -> ProblemFile:
    """Run a problem file and take what it states."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"there is no problem file {path}; `unpinn new {path}` writes a starter")
    module = _run(path)
    found = {name: getattr(module, name, None) for name in (*_KINDS, "read")}
    for name, kind in _KINDS.items():
        if found[name] is not None and not isinstance(found[name], kind):
            article = "an" if kind is Observations else "a"
            raise UserError(
                f"{name!r} in {path} must be {article} {kind.__name__}, not "
                f"{type(found[name]).__name__}"
            )
    if found["problem"] is None:
        raise UserError(f"{path} states no problem; it needs a line such as problem = Problem(...)")
    if found["read"] is not None and not callable(found["read"]):
        raise UserError(f"'read' in {path} must be a function of the readings' path")
    source = {**found["problem"].source, "file": path.name}
    found["problem"] = replace(found["problem"], source=source)
    return ProblemFile(**found)


def _run(path: Path) -> Any:
    # The name is part of every function's identity, so it must not depend on the directory.
    specification = importlib.util.spec_from_file_location(f"unpinn_problem_{path.stem}", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    beside = str(path.resolve().parent)
    sys.path.insert(0, beside)
    sys.modules[specification.name] = module
    try:
        specification.loader.exec_module(module)
    except UserError as error:
        raise UserError(f"{path}, line {_line(error, path)}: {error}") from None
    except SyntaxError as error:
        where = f", line {error.lineno}" if error.lineno else ""
        raise UserError(f"{path}{where}: this is not valid Python ({error.msg})") from None
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise UserError(f"{path}, line {_line(error, path)} raised {what}") from _own(error, path)
    finally:
        sys.path.remove(beside)
    return module


def _line(error: BaseException, path: Path) -> int:
    """The last line of the user's own file on the way to an error."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    resolved = str(path.resolve())
    lines += [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == resolved]
    return next((line for line in reversed(lines) if line is not None), 0)


def _own(error: BaseException, path: Path) -> BaseException:
    """The error with its traceback cut to start in the user's file."""
    step = error.__traceback__
    while step is not None and Path(step.tb_frame.f_code.co_filename).resolve() != path.resolve():
        step = step.tb_next
    return error.with_traceback(step or error.__traceback__)
