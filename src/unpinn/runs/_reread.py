"""The problem of a run that is on disk: a benchmark's by name, a user's from their own file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn.problem import Problem
from unpinn.readings import load_problem_file
from unpinn.runs._execute import read_configuration
from unpinn.runs._trust import remembered


def problem_of_run(directory: Any, problem_file: Any = None) -> Problem | None:
    """What a run in a directory is a run of; None for a benchmark, which is found by its name.

    A problem file is code: it is run only where the user names it, or has run the same text before.

    Arguments:
        directory: where the run was written.
        problem_file: where the problem file is now, if it was moved.
    """
    asked = read_configuration(directory)
    if not asked.is_file:
        if problem_file is not None:
            raise UserError(
                f"{directory} holds a run of the benchmark {asked.problem!r}, so no problem file "
                "is needed; leave it out"
            )
        return None
    path = Path(asked.problem if problem_file is None else problem_file)
    if not path.is_file():
        raise UserError(
            f"the problem file {path} is not there any more; say where it is now with --problem"
        )
    if problem_file is None and not remembered(path):
        raise UserError(
            f"the problem file {path} is Python code that you have not run yet as it is; look at "
            "it, and name it with --problem to run it"
        )
    return load_problem_file(path).problem
