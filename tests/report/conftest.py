"""A fit whose names are hostile, its report, and a browser to open pages in."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from unpinn.problem import Problem

# What a text must not become anywhere: an element, an attribute's end, or a script's.
HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=\"this.id='hit'\">'&"

STATED = '''\
"""A pulse drifts: {hostile}

More of it.
"""
import unpinn


def transport(u, speed):
    # a comment: <b id="hit">bold</b>
    return u.t + speed * u.x


problem = unpinn.Problem(
    name="pulse {hostile}",
    coordinates={{"x": (0.0, 1.0), "t": (0.0, 1.0)}},
    fields=["u"],
    unknowns=[unpinn.Scalar("speed", initial=1.0, bounds=(0, 9))],
    equations={{"transport {hostile}": transport}},
    conditions=[unpinn.Condition("start {hostile}", lambda u, x: u - x, at={{"t": "low"}},
                                 points=unpinn.Grid(9))],
    measurements={{"slope": lambda u: u.x}},
    collocation=unpinn.Grid(7, 7),
)
units = {{"x": "m", "t": "s", "speed": "m/s"}}
'''


class Reported(NamedTuple):
    """A fit and where its report was written."""

    fit: Any
    directory: Path

    @property
    def page(self) -> Path:
        """The page."""
        return self.directory / "index.html"


@pytest.fixture(scope="session")
def hostile() -> str:
    """A text that must stay a text."""
    return HOSTILE


@pytest.fixture(scope="session")
def stated(tmp_path_factory) -> Problem:
    """A problem whose every text is hostile."""
    from unpinn.readings import load_problem_file

    file = tmp_path_factory.mktemp("stated") / "pulse.py"
    file.write_text(STATED.format(hostile=HOSTILE.replace("'", "’").replace('"', '\\"')))
    return load_problem_file(file).problem


@pytest.fixture(scope="session")
def reported(stated, tmp_path_factory) -> Reported:
    """The whole pipeline: five sensors, of which one, with the worst name, reads 5 too much."""
    from unpinn import Adam, Architecture, ByMixture, Protocol, Recipe, Schedule, train, unlearn
    from unpinn.problem import observe
    from unpinn.readings import ReadingReport

    random = np.random.default_rng(0)
    names = np.array(["=A1", "B 10", "B 9", "Zürich", HOSTILE])
    sensor = np.repeat(names, 24)
    x, t = random.random((2, len(sensor)))
    values = np.stack([x - 2 * t, np.ones(len(sensor))], axis=1)
    values += 0.02 * random.standard_normal(values.shape)
    values[sensor == HOSTILE] += 5.0
    values[::3, 1] = np.nan
    readings = observe(stated, {"x": x, "t": t}, values, ("u", "slope"), sensor=sensor)
    protocol = Protocol((Adam(epochs=150, rate=1e-2),), architecture=Architecture(width=8, depth=2))
    stages = (Adam(epochs=40, rate=3e-3),)
    recipe = Recipe("tiny", ByMixture(), Schedule(steps=2, fraction=0.1), stages, rounds=1)
    fit = unlearn(train(stated, readings, protocol, seed=3), recipe)
    lines = ReadingReport(HOSTILE, "CSV", 121, 120, {"x": HOSTILE}, sensors=5)
    fit = fit.with_details(reading=lines.as_dict())
    directory = tmp_path_factory.mktemp("reported") / "report"
    fit.report(directory)
    return Reported(fit, directory)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium; without one the tests of pages are skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
    with playwright.sync_playwright() as running:
        path = path or running.chromium.executable_path
        if not Path(path).exists():
            pytest.skip("there is no Chromium on this machine")
        quiet = ("background-networking", "component-update", "sync", "gpu", "quic")
        arguments = ["--no-first-run", *(f"--disable-{name}" for name in quiet)]
        if sys.platform == "linux":
            arguments.append("--no-sandbox")
        found = running.chromium.launch(executable_path=path, args=arguments)
        yield found
        found.close()
