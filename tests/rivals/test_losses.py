"""The losses that rivals differ by, against what is known of them in closed form."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm, t

from unpinn.rivals._mad import within
from unpinn.rivals._oracle import true_weights, truly_good
from unpinn.rivals._warm_up import split_protocol
from unpinn.rivals._working import robust_deviation
from unpinn.training import Absolute, Adam, Huber, Lbfgs, Mixture, Protocol, StudentT, Trimmed
from unpinn.training._penalties import floored


def with_extras(**values):
    return SimpleNamespace(extras={name: jnp.float32(value) for name, value in values.items()})


def even(misfit):
    return jnp.full(misfit.shape, 1 / misfit.size)


MISFIT = jnp.array([[0.3], [-2.0], [0.05], [1.0]])


def test_a_mixture_judges_a_reading_as_a_whole():
    misfit = jnp.array([[0.1, -0.2], [3.0, 0.0], [0.0, 0.4]])
    weight = jnp.array([[0.2, 0.2], [0.2, 0.2], [0.2, 0.0]])
    model = with_extras(log_low=np.log(0.2), gap=np.log(np.expm1(np.log(5.0))), logit_high=0.0)
    rows = [norm.pdf(np.array(m), 0, [[0.2], [1.0]]).prod(axis=1).mean() for m in misfit[:2]]
    lone = norm.pdf(0.0, 0, [0.2, 1.0]).mean()
    expected = -(0.2 * np.log(rows).sum() + 0.2 * np.log(lone))
    assert float(Mixture()(misfit, weight, model)) == pytest.approx(expected, rel=1e-5)


def test_matched_likelihoods_count_good_readings_as_least_squares_does():
    small = jnp.array([[1e-3]])
    slope = lambda penalty, model: float(  # noqa: E731
        jax.grad(lambda r: penalty(r, even(r), model))(small)[0, 0]
    )
    s, freedom = 0.2, 3.0
    student = StudentT(freedom, unit=2 * freedom * s**2 / (freedom + 1))
    assert slope(student, with_extras(log_scale=np.log(s))) == pytest.approx(2e-3, rel=1e-3)
    mixture = Mixture(unit=2 * s**2)
    clear = with_extras(log_low=np.log(s), gap=5.0, logit_high=-20.0)
    assert slope(mixture, clear) == pytest.approx(2e-3, rel=1e-3)
    assert slope(Huber(0.1), None) == pytest.approx(2e-3, rel=1e-3)


def test_student_is_the_density_of_students_t():
    model = with_extras(log_scale=np.log(0.5))
    found = [float(StudentT(4.0)(m[None], jnp.ones((1, 1)), model)) for m in MISFIT]
    expected = -t.logpdf(np.asarray(MISFIT)[:, 0], 4.0, scale=0.5)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-4)


def test_a_floor_keeps_levels_from_collapsing():
    assert float(floored(jnp.float32(-30.0), 0.1)) == pytest.approx(np.log(0.1), rel=1e-5)
    assert float(floored(jnp.float32(1.0), 0.1)) == pytest.approx(1.0, abs=1e-2)
    # A perfectly fitted reading would otherwise make the likelihood infinite.
    perfect = jnp.zeros((3, 1))
    values = [
        float(StudentT(floor=0.1)(perfect, even(perfect), with_extras(log_scale=log)))
        for log in (-10.0, -20.0)
    ]
    assert values[1] == pytest.approx(values[0], abs=1e-3)


def test_trimmed_keeps_the_smallest_share_of_what_was_read():
    weight = jnp.array([[1.0], [1.0], [0.0], [1.0]]) / 3
    # Of |.3|, |2|, |1| two thirds are kept; the missing reading is no candidate.
    found = float(Trimmed(2 / 3)(jnp.where(weight > 0, MISFIT, 0.0), weight, None))
    assert found == pytest.approx((0.3**2 + 1.0**2) / 2, rel=1e-5)


def test_absolute_is_the_absolute_value_away_from_zero():
    found = float(Absolute(smooth=1e-4)(MISFIT, even(MISFIT), None))
    assert found == pytest.approx(float(jnp.abs(MISFIT).mean()), abs=2e-4)


def test_the_robust_deviation_is_that_of_the_good_half():
    random = np.random.default_rng(0)
    clean = 0.3 * random.standard_normal(4001)
    assert robust_deviation(clean) == pytest.approx(0.3, rel=0.05)
    spoiled = np.concatenate([clean, np.full(1000, 1e6)])
    assert robust_deviation(spoiled) < 0.5


def test_dropping_by_deviation_spares_a_quantity_that_is_fitted_exactly():
    misfits = np.array([[0.0, 0.1], [0.0, -0.1], [0.0, 0.2], [1.0, 9.0]])
    assert within(misfits, 3.0).tolist() == [True, True, True, False]
    assert within(misfits[:, :1], 3.0).all()


@pytest.mark.parametrize(
    ("stages", "head"),
    [
        ((Adam(100), Lbfgs(100)), [20]),
        ((Adam(10), Adam(10), Lbfgs(180)), [10, 10]),
        ((Adam(5), Lbfgs(1)), [1]),
        ((Lbfgs(40),), [4]),
        ((Adam(1),), [1]),
    ],
)
def test_a_warm_up_comes_out_of_the_budget(stages, head):
    protocol = Protocol(stages)
    first, rest = split_protocol(protocol, 0.1)
    assert [stage.length for stage in first.stages] == head
    spent = first.epochs + rest.epochs
    assert spent == protocol.epochs or protocol.epochs == 1
    assert all(stage.length > 0 for stage in (*first.stages, *rest.stages))


def test_a_warm_up_does_not_anneal_the_rate():
    first, rest = split_protocol(Protocol((Adam(100, schedule="cosine"),)), 0.1)
    assert first.stages[0].schedule == "constant" and rest.stages[0].schedule == "cosine"


def test_the_oracle_weighs_by_precision(world):
    task = world.task("inversion")
    weight = true_weights(task)
    np.testing.assert_allclose(weight * world.sigma**2, (weight * world.sigma**2)[0])
    np.testing.assert_array_equal(truly_good(task), world.sigma < 0.1)
    alike = world.task("inversion", true_sigma=np.full(40, 0.3))
    assert truly_good(alike).all()
