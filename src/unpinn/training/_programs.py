"""What stays compiled: programs belong to a problem's own functions, and outlive the problem.

A process can map only so many of them into its memory (65,530 mappings on Linux, about a thousand
a problem that is trained and unlearned); beyond that it dies without a word. So where problem after
problem is stated anew, what was compiled is let go from time to time. One problem with as many
seeds, readings and recipes as may be compiles once.
"""

from __future__ import annotations

import weakref

import jax

from unpinn.problem import Problem

MOST = 16

_known: weakref.WeakSet[Problem] = weakref.WeakSet()
_counted = 0


def note(problem: Problem) -> None:
    """A problem is about to be trained; for every so many new ones all programs are let go."""
    global _counted
    if problem in _known:
        return
    if _counted == MOST:
        jax.clear_caches()
        # Problems that are still there will be compiled anew, and count again.
        _known.clear()
        _counted = 0
    _known.add(problem)
    _counted += 1
