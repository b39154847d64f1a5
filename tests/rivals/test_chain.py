"""The sampler on a density whose moments are known, and the report it gives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.rivals._chain import Sampler, effective_sample_size, run_chain

MEAN = jnp.array([1.0, -2.0])
DEVIATION = jnp.array([0.5, 1.5])


def gaussian(given, x):
    return -0.5 * jnp.sum(((x - given) / DEVIATION) ** 2)


def sample(sampler: Sampler, **options):
    return run_chain(sampler, gaussian, MEAN, jnp.zeros(2), jax.random.key(0), **options)


@pytest.mark.parametrize("nuts", [False, True])
def test_it_samples_a_gaussian(nuts):
    sampler = Sampler(nuts=nuts, steps=7, burn_in=150, samples=1200)
    chain = sample(sampler)
    draws = np.stack(chain.positions[sampler.burn_in :])
    assert draws.shape == (1200, 2)
    effective = effective_sample_size(draws)
    assert (effective > 100).all()
    error = 4 * np.asarray(DEVIATION) / np.sqrt(effective)
    assert (np.abs(draws.mean(axis=0) - np.asarray(MEAN)) < error).all()
    np.testing.assert_allclose(draws.std(axis=0), DEVIATION, rtol=0.25)
    assert chain.column("acceptance", sampler).mean() == pytest.approx(0.8, abs=0.15)
    assert chain.column("divergent", sampler).sum() == 0
    steps = chain.column("steps", sampler)
    assert (steps == 7).all() if not nuts else steps.max() <= 2**5 - 1


def test_the_step_size_is_adapted_in_the_burn_in_alone():
    sampler = Sampler(burn_in=10, samples=5)
    sizes = np.array([info[3] for info in sample(sampler).infos])
    assert len(np.unique(sizes[:10])) > 5
    assert len(np.unique(sizes[10:])) == 1


def test_a_chain_goes_on_bit_for_bit_from_any_sample(tmp_path):
    sampler = Sampler(burn_in=4, samples=6)
    whole = sample(sampler)
    for stop in (2, 4, 7):
        file = tmp_path / str(stop) / "chain.safetensors"
        told = []

        def watch(moment, told=told, stop=stop):
            told.append(moment)
            if len(told) == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            sample(sampler, file=file, watcher=watch)
        rest = []
        again = sample(sampler, file=file, watcher=rest.append)
        assert len(rest) == sampler.length - stop
        assert np.array_equal(np.stack(again.positions), np.stack(whole.positions))
        assert np.array_equal(np.stack(again.infos), np.stack(whole.infos))
        assert [m.stage for m in rest] == [1] * max(0, 4 - stop) + [2] * min(6, 10 - stop)


def test_another_runs_chain_is_refused(tmp_path):
    file = tmp_path / "chain.safetensors"

    def stop(moment):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(Sampler(burn_in=2, samples=2), file=file, digest="one", watcher=stop)
    with pytest.raises(UserError, match="another configuration"):
        sample(Sampler(burn_in=2, samples=2), file=file, digest="two")


def test_correlated_draws_are_worth_less():
    random = np.random.default_rng(0)
    noise = random.standard_normal((400, 2))
    walk = np.zeros(400)
    for k in range(1, 400):
        walk[k] = 0.95 * walk[k - 1] + noise[k, 1]
    free, bound = effective_sample_size(np.stack([noise[:, 0], walk], axis=1))
    assert free > 200 and bound < 60


def test_the_fit_reports_its_chain(world):
    fit = world.fit("bpinn", "inversion")
    told = fit.details
    assert told["sampler"] == "hmc" and told["samples"] == 4 and told["burn_in"] == 3
    assert told["gradients"] == 7 * 3 and told["leapfrog_steps"] == 3
    assert told["trajectory_length"] == pytest.approx(3 * told["step_size"])
    assert 0 <= told["acceptance"] <= 1 and told["divergences"] >= 0
    assert set(told["likelihood_sigma"]) == {"data", "decay", "start"}
    # The stated scale of the readings is the root mean square misfit, in working units.
    baseline = world.fit("pinn", "inversion")
    unit = baseline.model.layout.scale[0]
    rms = np.sqrt(np.mean(baseline.misfits() ** 2)) / unit
    assert told["likelihood_sigma"]["data"] == pytest.approx(rms, rel=1e-3)
    assert {"k", "u (median)", "log_density"} == set(told["effective_sample_size"])
    assert fit.unknown_samples["k"].shape == (4,)
    assert fit.before is baseline
