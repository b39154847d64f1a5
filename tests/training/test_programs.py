"""Programs are let go where problem after problem is stated anew, and not where one stays."""

from __future__ import annotations

import jax
import pytest

from unpinn.problem import Problem
from unpinn.training import _programs


@pytest.fixture
def cleared(monkeypatch) -> list[int]:
    """Has an entry for every time that programs were let go."""
    told: list[int] = []
    monkeypatch.setattr(jax, "clear_caches", lambda: told.append(1))
    monkeypatch.setattr(_programs, "_known", type(_programs._known)())
    monkeypatch.setattr(_programs, "_counted", 0)
    return told


def problems(count: int) -> list[Problem]:
    return [
        Problem({"x": (0, 1)}, ["u"], {"line": lambda u, n=n: u.x - n}) for n in range(count)
    ]  # fmt: skip


def test_one_problem_keeps_its_programs(cleared):
    (problem,) = problems(1)
    for _ in range(100):
        _programs.note(problem)
    assert cleared == []


def test_many_problems_do_not_and_those_that_stay_count_again(cleared):
    many = problems(_programs.MOST + 4)
    for problem in many:
        _programs.note(problem)
    assert len(cleared) == 1
    for problem in many:
        _programs.note(problem)
    assert len(cleared) == 2
