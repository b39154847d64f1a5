"""What every test and doctest runs under: types checked at run time, no display, fixed seeds."""

from __future__ import annotations

import os
import random
from importlib.util import find_spec

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

os.environ["MPLBACKEND"] = "Agg"
# Left alone, DeepXDE would choose a backend and write its choice into the home folder.
os.environ.setdefault("DDE_BACKEND", "pytorch")

# Every signature of the package is checked as it is called, shapes included. This must come
# before anything imports the package.
install_import_hook("unpinn", "beartype.beartype")

# Raw integer keys are mistaken for data; the package uses typed ones only.
jax.config.update("jax_legacy_prng_key", "error")

# Compilation makes a first example slow and a machine may be busy: time proves nothing here.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Doctests import their module, and an adapter's module imports the framework that it adapts.
collect_ignore_glob = [
    f"src/unpinn/adapters/*{name}*" for name in ("torch", "deepxde") if find_spec(name) is None
]


@pytest.fixture(autouse=True)
def _fixed_seeds():
    random.seed(0)
    np.random.seed(0)
