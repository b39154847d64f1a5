"""The Gaussian in all trained numbers: it contains that in the last layer, and is wider."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn._errors import UserError
from unpinn.network import Architecture
from unpinn.problem import Condition, Measurement, Problem, Scalar, Sobol, observe
from unpinn.rivals import _laplace, _linearised, intervals
from unpinn.training import Adam, Protocol, train


@pytest.fixture(scope="module")
def fit():
    """A line that two instruments read, one of them over some width, and not at every place."""
    problem = Problem(
        {"x": (0.0, 1.0)}, ["u"], {"line": lambda u, a, b: u.xx + b * (u.x - a)},
        unknowns=[Scalar("a", initial=1.0), Scalar("b", 1e-3, bounds=(1e-6, 1.0), log=True)],
        conditions=[Condition("start", lambda u: u, at={"x": "low"})],
        measurements={"wide": Measurement(lambda u: u, footprint={"x": 0.1})},
        collocation=Sobol(16),
    )  # fmt: skip
    random = np.random.default_rng(2)
    x = random.uniform(0.1, 0.9, 30)
    values = 2 * np.stack([x, x], axis=1) + 0.05 * random.standard_normal((30, 2))
    values[::3, 1] = np.nan
    protocol = Protocol((Adam(epochs=150, rate=1e-2),), architecture=Architecture(width=5, depth=2))
    return train(problem, observe(problem, x[:, None], values, ("u", "wide")), protocol, seed=1)


def test_its_matrix_contains_the_last_layers(fit):
    with precision.scope("float64"):
        model = precision.cast(fit.model, "float64")
        objective = _laplace._whitened(fit, *_laplace.trusted(fit))
        jacobian = np.concatenate(list(_linearised._jacobians(objective, model)))
        whole = jacobian.T @ jacobian
        phi, rebuild = _linearised._rebuilding(model)
        places = np.asarray(_laplace.numbers(rebuild(jnp.arange(float(phi.size))))).astype(int)
        wanted = _laplace._gram(objective, model)
    found = whole[np.ix_(places, places)]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    assert len(whole) == _linearised._size(fit.model) > len(wanted)
    assert len(jacobian) == _linearised._rows(objective) == 60 + 16 + 1


@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (300, 40), (40, 300)])
def test_the_small_matrix_gives_the_variances_that_the_large_one_gives(shape):
    random = np.random.default_rng(0)
    blocks = list(np.array_split(10 * random.standard_normal(shape), 3))
    slopes = random.standard_normal((7, shape[1]))
    both = (_linearised._Tall, _linearised._Wide)
    tall, wide = (kind.of(iter(blocks), shape[1], 10.0).variance(slopes) for kind in both)
    np.testing.assert_allclose(wide, tall, rtol=1e-6)
    whole = np.concatenate(blocks)
    covariance = np.linalg.inv(whole.T @ whole + 0.01 * np.eye(shape[1]))
    np.testing.assert_allclose(tall, np.einsum("ni,ij,nj->n", slopes, covariance, slopes))


def test_what_may_move_more_is_known_less(fit):
    narrow, wide = intervals(fit, "laplace"), intervals(fit, "linearised")
    for name, value in fit.unknowns.items():
        low, high = wide.unknowns[name]
        inner_low, inner_high = narrow.unknowns[name]
        assert low <= inner_low < value < inner_high <= high
    points = np.linspace(0, 1, 5)[:, None]
    for what in ("u", "u.x"):
        low, high = wide.band(points, what)
        inner_low, inner_high = narrow.band(points, what)
        # The optimum is the same, so that one band lies in the other.
        assert (low <= inner_low + 1e-9).all() and (high >= inner_high - 1e-9).all()
        np.testing.assert_allclose((low + high) / 2, fit.predict(points, what), rtol=1e-6)


def test_a_higher_level_is_wider_and_what_cannot_be_is_said(fit, monkeypatch):
    (low, high), (lower, higher) = (
        intervals(fit, "linearised", level).unknowns["a"] for level in (0.5, 0.95)
    )
    assert lower < low < high < higher
    with pytest.raises(UserError, match="a prior above zero"):
        intervals(fit, "linearised", prior=0.0)
    monkeypatch.setattr(_linearised, "MOST_NUMBERS", 10)
    assert _linearised.within_reach(fit)
    monkeypatch.setattr(_linearised, "MOST_ENTRIES", 1_000)
    with pytest.raises(UserError, match=r"too many for the method 'linearised'.*'laplace'"):
        intervals(fit, "linearised")
