"""Every benchmark trains by its own protocol, and the fit is judged."""

from __future__ import annotations

import math

import pytest

from unpinn.benchmarks import BENCHMARKS, PRESETS, benchmark
from unpinn.training import Quiet, train


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_its_protocols_train_it(name, preset):
    bench = benchmark(name, preset)
    observations = bench.readings(42).observations
    fit = train(bench.problem, observations, bench.protocol.scaled_to(2e-4), 42, watcher=Quiet())
    first = bench.evaluate(fit)
    tuned = train(
        bench.problem, observations, bench.fine_tune.scaled_to(2e-3), 42, start=fit, watcher=Quiet()
    )
    for found in (first, bench.evaluate(tuned)):
        assert 0 < found["l2re"] < 1e3 and 0 < found["state_l2re"] < 1e3
        for name_of_unknown, value in found["unknowns"].items():
            assert math.isfinite(value["value"]), name_of_unknown
    assert tuned.unknowns.keys() == dict(bench.true_scalars).keys()
