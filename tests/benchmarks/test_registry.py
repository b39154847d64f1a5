"""The registry: names, presets, sharing, and what importing costs."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.benchmarks import BENCHMARKS, PRESETS, _registry, benchmark


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_name_gives_one_object(name, preset):
    bench = benchmark(name, preset)
    assert bench is benchmark(name, preset)
    assert (bench.name, bench.preset, bench.problem.name) == (name, preset, name)
    source = dict(bench.problem.source)
    assert benchmark(source.pop("benchmark"), **source) is bench


@pytest.mark.parametrize("name", BENCHMARKS)
def test_problems_built_twice_share_compiled_programs(name):
    # Programs are shared between expressions that are equal, and those are if their functions are.
    data = ("embedded",) if name == "nsinv" else ()
    first, second = (_registry._BUILDERS[name]("paper", *data).problem for _ in range(2))
    assert first is not second
    for mine, other in zip(
        (*first.equation_expressions, *first.condition_expressions),
        (*second.equation_expressions, *second.condition_expressions),
        strict=True,
    ):
        assert mine == other and hash(mine) == hash(other)
    assert first.fingerprint == second.fingerprint


def test_fingerprints_tell_benchmarks_apart():
    prints = {benchmark(name).problem.fingerprint for name in BENCHMARKS}
    assert len(prints) == len(BENCHMARKS)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_data_are_built_within_two_seconds(name, preset):
    data = ("embedded",) if name == "nsinv" else ()
    # The processor's time, which other work beside this one disturbs least.
    begin = time.process_time()
    _registry._BUILDERS[name](preset, *data).readings(44)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("pinw",), "did you mean 'pinv'"),
        (("heat_forced",), "did you mean 'heat-forced'"),
        (("navier",), "those are pinv, hinv"),
        (("heat", "release"), "did you mean 'released'"),
        (("heat", "paper", "wake.npz"), "only nsinv"),
        (("nsinv", "paper", "nowhere.npz"), "nowhere.npz"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(arguments, culprit):
    with pytest.raises(UserError, match=culprit) as caught:
        benchmark(*arguments).readings(42)
    assert "\n" not in str(caught.value)


def test_a_wake_that_ends_too_early_is_refused(tmp_path):
    from unpinn.benchmarks._wake import embedded_harmonics

    wake = embedded_harmonics()
    file = tmp_path / "short.npz"
    half = len(wake.x) // 2
    np.savez(file, x=wake.x[:half], y=wake.y, period=wake.period,
             harmonics=wake.harmonics[..., :half])  # fmt: skip
    with pytest.raises(UserError, match=r"covers x in \[1, 4"):
        benchmark("nsinv", wake=file).readings(42)


def test_downloaded_data_are_used_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr(_registry, "wake_is_cached", lambda: True)
    assert benchmark("nsinv").problem.source["wake"] == "classical"
    assert benchmark("nsinv", wake="embedded").problem.source["wake"] == "embedded"
    monkeypatch.setattr(_registry, "wake_is_cached", lambda: False)
    assert benchmark("nsinv").problem.source["wake"] == "embedded"


def test_importing_the_benchmarks_loads_nothing_heavy():
    script = (
        "import sys, unpinn.benchmarks\n"
        "print([m for m in ('scipy.io', 'scipy.interpolate', 'matplotlib', 'pandas', 'sklearn',"
        " 'xarray', 'pooch') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
