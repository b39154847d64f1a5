"""One kind of error or two: levels, share, posterior, and misfits that are hardly any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from unpinn._errors import UserError
from unpinn.training import NoiseEstimate
from unpinn.unlearning import fit_mixture, log_densities, posterior_of


def mixed(count=1500, low=0.1, high=1.0, share=0.3, quantities=1, seed=0):
    random = np.random.default_rng(seed)
    bad = random.random(count) < share
    sigma = np.where(bad, high, low)[:, None]
    return sigma * random.standard_normal((count, quantities)), bad


@pytest.mark.parametrize("share", [0.1, 0.4, 0.6])
@pytest.mark.parametrize("high", [0.5, 3.0])
def test_levels_and_share_are_found(share, high):
    misfits, bad = mixed(share=share, high=high)
    noise = fit_mixture(misfits).noise
    assert noise.components == 2 and noise.evidence > 0
    assert noise.low == pytest.approx(0.1, rel=0.15)
    assert noise.high == pytest.approx(high, rel=0.15)
    assert noise.share == pytest.approx(bad.mean(), abs=0.08)


def test_the_bad_may_be_in_the_majority():
    noise = fit_mixture(mixed(share=0.85)[0]).noise
    assert noise.share == pytest.approx(0.85, abs=0.05) and noise.low < noise.high


def test_more_quantities_tell_more_of_the_same_reading():
    kinds = [mixed(count=400, quantities=q, high=0.3) for q in (1, 3)]
    wrong = [np.mean((fit_mixture(m).posterior > 0.5) != bad) for m, bad in kinds]
    assert wrong[1] < 0.5 * wrong[0]


@pytest.mark.parametrize("seed", range(4))
def test_one_kind_is_called_one_kind(seed):
    misfits = 0.3 * np.random.default_rng(seed).standard_normal((500, 1))
    found = fit_mixture(misfits)
    assert found.noise.components == 1 and found.noise.share == 0 and found.noise.evidence <= 0
    assert found.noise.low == found.noise.high == pytest.approx(np.sqrt(np.mean(misfits**2)))
    assert not found.posterior.any()


def test_the_evidence_is_the_information_criterion():
    misfits, _ = mixed(count=300)
    noise = fit_mixture(misfits).noise
    single = np.sqrt(np.mean(misfits**2))
    alone = norm.logpdf(misfits[:, 0], scale=single).sum()
    two = log_densities(misfits, noise).sum()
    # Half the criterion's difference: two more parameters, each at half the log of the sample.
    assert noise.evidence == pytest.approx(two - alone - np.log(300))


def test_the_fit_is_a_maximum_of_the_likelihood():
    misfits, _ = mixed(count=400)
    noise = fit_mixture(misfits).noise
    best = log_densities(misfits, noise).sum()
    for factor in (0.95, 1.05):
        for name in ("low", "high", "share"):
            changed = {**vars(noise), name: factor * getattr(noise, name)}
            assert log_densities(misfits, NoiseEstimate(**changed)).sum() < best


def test_densities_and_posterior_are_those_of_two_gaussians():
    noise = NoiseEstimate(0.2, 1.5, 0.25, 2, 1.0)
    misfits = np.array([[0.1, -0.3], [2.0, np.nan], [0.0, 0.0]])
    densities = [
        np.nanprod(norm.pdf(misfits, scale=level), axis=1) for level in (noise.low, noise.high)
    ]
    together = 0.75 * densities[0] + 0.25 * densities[1]
    np.testing.assert_allclose(log_densities(misfits, noise), np.log(together))
    np.testing.assert_allclose(posterior_of(misfits, noise), 0.25 * densities[1] / together)


def test_with_one_kind_nothing_is_bad():
    noise = NoiseEstimate(0.5, 0.5, 0.0, 1, -3.0)
    misfits = np.array([[100.0], [0.0]])
    assert posterior_of(misfits, noise).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(log_densities(misfits, noise), norm.logpdf(misfits[:, 0], scale=0.5))


@settings(max_examples=12)
@given(factor=st.sampled_from([1e-60, 1e-9, 0.3, 1e9, 1e60]), seed=st.integers(0, 99))
def test_units_and_order_do_not_matter(factor, seed):
    misfits, _ = mixed(count=150, seed=seed)
    order = np.random.default_rng(seed).permutation(150)
    plain, other = fit_mixture(misfits), fit_mixture(factor * misfits[order])
    assert other.noise.components == plain.noise.components
    assert other.noise.low == pytest.approx(factor * plain.noise.low, rel=5e-3)
    assert other.noise.high == pytest.approx(factor * plain.noise.high, rel=5e-3)
    # Iterations end by a change relative to the likelihood, whose own size follows the unit.
    np.testing.assert_allclose(other.posterior, plain.posterior[order], atol=5e-3)


def test_a_larger_misfit_is_never_less_suspect():
    misfits, _ = mixed(count=300)
    posterior = fit_mixture(misfits).posterior[np.argsort(np.abs(misfits[:, 0]))]
    assert (np.diff(posterior) >= 0).all() and posterior[-1] > 0.99


def test_plain_columns_and_missing_quantities():
    misfits, _ = mixed(count=200)
    flat = fit_mixture(misfits[:, 0])
    padded = fit_mixture(np.concatenate([misfits, np.full_like(misfits, np.nan)], axis=1))
    for found in (flat, padded):
        np.testing.assert_allclose(found.posterior, fit_mixture(misfits).posterior)


# -- misfits that are hardly any ---------------------------------------------------------------


def test_no_misfit_at_all_is_refused():
    with pytest.raises(UserError, match="no misfit to judge the noise by"):
        fit_mixture(np.full((30, 2), np.nan))
    with pytest.raises(UserError, match="no misfit to judge the noise by"):
        fit_mixture(np.empty((0, 1)))


@pytest.mark.parametrize("count", [1, 30])
def test_readings_that_are_met_exactly_are_of_one_kind(count):
    found = fit_mixture(np.zeros((count, 1)))
    assert (found.noise.low, found.noise.high, found.noise.components) == (0.0, 0.0, 1)
    assert np.isfinite(log_densities(np.zeros((count, 1)), found.noise)).all()


def test_a_handful_of_readings_is_too_few_to_tell_kinds_apart():
    misfits = np.array([0.1] * 10 + [5.0] * 9)
    assert fit_mixture(misfits).noise.components == 1
    assert fit_mixture(np.append(misfits, 5.0)).noise.components == 2


def test_misfits_that_are_all_alike_are_of_one_kind():
    found = fit_mixture(np.full((50, 1), 0.7))
    assert found.noise.components == 1 and found.noise.low == pytest.approx(0.7)


@pytest.mark.parametrize("exact", [0.5, 0.9])
def test_readings_most_of_which_are_met_exactly(exact):
    misfits = np.where(np.arange(100) < 100 * exact, 0.0, 1.0)[:, None]
    found = fit_mixture(misfits)
    assert found.noise.components == 2 and 0 < found.noise.low < 1e-5
    np.testing.assert_array_equal(found.posterior > 0.5, misfits[:, 0] == 1.0)
    assert np.isfinite(log_densities(misfits, found.noise)).all()
    assert found.noise.share == pytest.approx(1 - exact)


def test_one_outlier_among_many_is_found():
    misfits = 0.1 * np.random.default_rng(0).standard_normal((100, 1))
    misfits[7] = 40.0
    assert np.flatnonzero(fit_mixture(misfits).posterior > 0.5).tolist() == [7]


# -- quantities of different kinds ------------------------------------------------------------


def unlike(count: int, ratio: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Misfits of two quantities whose errors are as 1 to `ratio`, and which rows are bad."""
    rng = np.random.default_rng(seed)
    bad = rng.random(count) < 0.3
    errors = rng.standard_normal((count, 2)) * np.where(bad, 1.0, 0.1)[:, None]
    return errors * [1.0, ratio], bad


@pytest.mark.parametrize("ratio", [1e-6, 0.1, 3.0, 1e4])
def test_quantities_with_errors_of_different_size_are_judged_by_their_own(ratio):
    misfits, bad = unlike(800, ratio)
    found = fit_mixture(misfits)
    assert found.noise.factors == pytest.approx((1.0, ratio), rel=0.1)
    assert found.noise.low == pytest.approx(0.1, rel=0.1)
    assert found.noise.high == pytest.approx(1.0, rel=0.1)
    assert np.mean((found.posterior > 0.5) == bad) > 0.97
    np.testing.assert_allclose(found.posterior, posterior_of(misfits, found.noise))
    levels = [found.noise.low, found.noise.high]
    share = [1 - found.noise.share, found.noise.share]
    densities = sum(
        s * norm.pdf(misfits, scale=level * np.array(found.noise.factors)).prod(axis=1)
        for s, level in zip(share, levels, strict=True)
    )
    np.testing.assert_allclose(log_densities(misfits, found.noise), np.log(densities))


def test_quantities_with_errors_alike_share_their_levels():
    assert fit_mixture(unlike(400, 1.0)[0]).noise.factors == ()
    assert fit_mixture(unlike(20_000, 1.1)[0]).noise.factors == ()
    # Too few of one quantity to tell, and one that is always met exactly.
    misfits = unlike(400, 10.0)[0]
    misfits[10:, 1] = np.nan
    assert fit_mixture(misfits).noise.factors == ()
    misfits[:, 1] = 0.0
    assert fit_mixture(misfits).noise.factors == ()


def test_a_unit_changes_a_quantity_s_factor_and_nothing_else():
    misfits = unlike(500, 2.0)[0]
    misfits[::7, 0] = np.nan
    plain, other = fit_mixture(misfits), fit_mixture(misfits * [1.0, 1e3])
    np.testing.assert_allclose(other.posterior, plain.posterior, atol=1e-6)
    assert other.noise.factors == pytest.approx((1.0, 1e3 * plain.noise.factors[1]), rel=1e-5)
    assert other.noise.low == pytest.approx(plain.noise.low, rel=1e-5)
