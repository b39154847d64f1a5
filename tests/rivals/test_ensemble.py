"""Members trained together are the members trained alone."""

from __future__ import annotations

import numpy as np
import pytest

from unpinn import precision
from unpinn.rivals._ensemble import drawn_models
from unpinn.training import Adam, Lbfgs, Protocol, Quiet, train
from unpinn.training._together import member
from unpinn.training._train_together import train_together

STAGES = {
    "adam": (Adam(20),),
    "cosine, rescaled": (Adam(10, rescale="reference"), Adam(10, schedule="cosine")),
    "batches": (Adam(5, batch=16),),
    "lbfgs": (Adam(10, groups=("data",)), Lbfgs(8)),
}


@pytest.mark.parametrize("name", STAGES)
def test_together_is_alone(world, name):
    protocol = Protocol(
        STAGES[name], architecture=world.protocols["inversion"].architecture, name=name
    )
    task = world.task("inversion", protocol=protocol)
    models = drawn_models(task, 2)
    together = train_together(
        world.problem, world.observations, protocol, models, 1, watcher=Quiet()
    )
    for number in range(2):
        with precision.scope("float32"):
            first = member(models, number)
        alone = train(world.problem, world.observations, protocol, 1, start=first, watcher=Quiet())
        found = together.predict_samples(world.observations.points, "u")[number]
        if name == "batches":
            # Each member shuffles the readings for itself.
            assert np.abs(found - alone.predict(world.observations.points)["u"]).max() < 0.05
            continue
        np.testing.assert_allclose(found, alone.predict(world.observations.points)["u"], atol=2e-4)
        assert together.unknown_samples["k"][number] == pytest.approx(alone.unknowns["k"], abs=2e-4)
    assert together.details["scales"].keys() == alone.details["scales"].keys()
    assert together.details["scales"] == pytest.approx(alone.details["scales"], rel=1e-4)
    assert together.details["weights"] == pytest.approx(alone.details["weights"])


def test_members_start_apart_and_the_first_is_the_plain_network(world):
    fit = world.fit("ensemble", "inversion")
    samples = fit.predict_samples(world.observations.points, "u")
    assert samples.std(axis=0).max() > 1e-3
    plain = world.fit("pinn", "inversion").predict(world.observations.points)["u"]
    np.testing.assert_allclose(samples[0], plain, atol=1e-5)


def test_history_is_the_mean_over_members(world):
    fit = world.fit("ensemble", "assimilation")
    assert len(fit.history) <= world.protocols["assimilation"].epochs
    assert np.isfinite(fit.history["data"]).all()
    assert fit.history["k"][-1] == pytest.approx(fit.unknowns["k"], rel=1e-3)
