"""Importing the package changes nothing outside it, and takes no time."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import unpinn

FOLDER = Path(unpinn.__file__).parent
# Imported when they are needed, and not before.
HEAVY = ("matplotlib", "pandas", "sklearn", "xarray", "torch", "dask", "blackjax", "deepxde")
LIMIT, SLACK = 1.5, 3.0


def ran(script: str, *arguments: str):
    """The JSON that a script prints in a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent)}
    process = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(process.stdout.splitlines()[-1])


GLOBAL_STATE = """
import json, locale, logging, os, random, signal, sys, warnings
import jax, matplotlib, numpy

def state():
    return {
        "jax": {key: repr(value) for key, value in jax.config.values.items()},
        "x64": repr(jax.numpy.zeros(1).dtype),
        "print": {key: repr(value) for key, value in numpy.get_printoptions().items()},
        "errors": numpy.geterr(),
        "random": repr(numpy.random.get_state()[1].tolist()) + repr(random.getstate()),
        "matplotlib": {key: repr(value) for key, value in matplotlib.rcParams.items()},
        "environment": dict(os.environ),
        "warnings": [repr(entry) for entry in warnings.filters],
        "logging": [logging.root.level, repr(logging.root.handlers)],
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": repr(signal.getsignal(signal.SIGINT)),
        "hooks": [repr(sys.excepthook), repr(sys.displayhook), sys.getrecursionlimit()],
    }

# Libraries that the package depends on may have habits of their own.
import equinox, optax, scipy
before = state()
import unpinn
for name in unpinn.__all__:
    getattr(unpinn, name)
after = state()
changed = [
    [part, key]
    for part in before
    for key in (before[part] if isinstance(before[part], dict) else [None])
    if (before[part] if key is None else before[part][key])
    != (after[part] if key is None else after[part].get(key))
]
print(json.dumps(changed))
"""


def test_importing_changes_no_global_state():
    assert ran(GLOBAL_STATE) == []


def test_heavy_libraries_wait_until_they_are_needed():
    script = """
import json, sys, unpinn
for name in unpinn.__all__:
    getattr(unpinn, name)
print(json.dumps(list(sys.modules)))
"""
    loaded = set(ran(script))
    assert "unpinn.problem" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_every_module_can_be_imported_alone():
    modules = sorted(
        ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts).removesuffix(".__init__")
        for folder in ("problem", "network")
        for path in (FOLDER / folder).glob("*.py")
    )
    script = """
import importlib, json, sys
failed = []
for name in sys.argv[1:]:
    for loaded in [m for m in sys.modules if m.partition(".")[0] == "unpinn"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed.append([name, str(error)])
print(json.dumps(failed))
"""
    assert ran(script, *modules) == []


# Every folder may use those before it.
ORDER = (
    "problem", "network", "readings", "training", "unlearning", "evaluation", "rivals",
    "benchmarks", "export", "report", "adapters", "runs", "study", "cli",
)  # fmt: skip
# The pages of studies are loaded by the command line alone.
ABOVE = {"report": ("study",)}


def imported(path: Path) -> set[str]:
    """The folders that a file uses as it is loaded, not only when a function is called."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        found |= {name.split(".")[1] for name in names if name.startswith("unpinn.")}
    return found & set(ORDER)


@pytest.mark.parametrize("folder", ORDER)
def test_imports_go_one_way(folder):
    allowed = {*ORDER[: ORDER.index(folder) + 1], *ABOVE.get(folder, ())}
    files = list((FOLDER / folder).rglob("*.py"))
    assert files
    assert {str(path): imported(path) - allowed for path in files if imported(path) - allowed} == {}


def test_every_folder_has_its_place():
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert folders == set(ORDER)


def test_the_contents_pages_name_what_they_offer():
    for name in ("problem", "network"):
        page = __import__(f"unpinn.{name}", fromlist=["*"])
        offered = [
            line.rsplit(" as ", 1)[1].strip()
            for line in Path(page.__file__).read_text().splitlines()
            if " as " in line and line.startswith("from unpinn")
        ]
        assert offered == list(dict.fromkeys(offered))
        assert all(hasattr(page, offer) for offer in offered)


@pytest.mark.parametrize("statement", ["import unpinn", "import unpinn.problem, unpinn.network"])
def test_importing_takes_no_time(statement):
    script = f"""
import json, time
start = time.process_time()
{statement}
print(json.dumps(time.process_time() - start))
"""
    # The processor's time, which other work beside this one disturbs least; with slack even so.
    assert min(ran(script) for _ in range(2)) < LIMIT * SLACK
