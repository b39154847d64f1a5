"""Intervals against closed forms, against each other, and against misuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t

from unpinn._errors import UserError
from unpinn.evaluation import coverage
from unpinn.network import Architecture
from unpinn.problem import Problem, Scalar, Sobol, observe
from unpinn.rivals import intervals, judged, run_method
from unpinn.rivals._resampling import Jittered
from unpinn.rivals._uncertainty import around
from unpinn.training import Adam, Protocol, Quiet, train
from unpinn.unlearning import ByMixture, LayerView, Recipe, Schedule, criterion

POINTS = np.linspace(0.2, 2.8, 7)[:, None]


def line(u, k):
    return u.x - k


@pytest.fixture(scope="module")
def straight():
    """A field linear in the last layer, an equation linear in field and unknown."""
    problem = Problem(
        coordinates={"x": (0, 3)},
        fields=["u"],
        unknowns=[Scalar("k", initial=0.5)],
        equations={"line": line},
        collocation=Sobol(16),
    )
    random = np.random.default_rng(3)
    x = np.sort(random.uniform(0, 3, 60))[:, None]
    return problem, observe(problem, x, 1 + 2 * x[:, 0] + 0.3 * random.standard_normal(60))


def design(fit, x):
    """Rows of d(field)/d(numbers) and d(slope)/d(numbers), by hand, in the user's units."""
    layout, network = fit.model.layout, fit.model.network
    inner = np.asarray(network.hidden[0].weight, float)[:, 0]
    phase = (x[:, :1] - layout.centre[0]) / layout.half[0] * inner
    value = np.tanh(phase + np.asarray(network.hidden[0].bias, float))
    slope = (1 - value**2) * inner / layout.half[0]
    one, zero, scale = np.ones((len(x), 1)), np.zeros((len(x), 1)), layout.scale[0]
    return (
        np.concatenate([scale * value, scale * one, zero], axis=1),
        np.concatenate([scale * slope, zero, zero], axis=1),
    )


@pytest.mark.parametrize("scaled", [True, False])
def test_laplace_is_the_closed_form_where_everything_is_linear(straight, scaled):
    problem, observations = straight
    protocol = Protocol(
        (Adam(3, rescale="reference" if scaled else None),),
        scaled=scaled,
        weights={"equations": 0.3},
        architecture=Architecture(width=4, depth=1),
    )
    fit = train(problem, observations, protocol, 1, watcher=Quiet())
    found = intervals(fit, "laplace", level=0.8, prior=2.0)
    # By hand: precision of data, of the equation by its weight, and of the prior.
    data, _ = design(fit, observations.points)
    _, slope = design(fit, problem.collocation_points(1))
    unit = 0.5 if scaled else 1.0
    slope[:, -1] = -unit
    slope /= fit.details["scales"]["line"]
    variance = np.mean(fit.misfits() ** 2)
    field = fit.model.layout.scale[0]
    factor = len(data) * field**2 / variance * 0.3 / len(slope)
    precision = data.T @ data / variance + factor * slope.T @ slope + np.eye(6) / 2.0**2
    covariance = np.linalg.inv(precision)
    quantile = norm.ppf(0.9)
    low, high = found.unknowns["k"]
    assert high - low == pytest.approx(2 * quantile * unit * np.sqrt(covariance[-1, -1]), rel=1e-4)
    assert (low + high) / 2 == pytest.approx(fit.unknowns["k"], rel=1e-5)
    rows, steep = design(fit, POINTS)
    for what, gradient in (("u", rows), ("u.x", steep)):
        below, above = found.band(POINTS, what)
        half = quantile * np.sqrt(np.einsum("np,pq,nq->n", gradient, covariance, gradient))
        np.testing.assert_allclose((above - below) / 2, half, rtol=1e-4)
        np.testing.assert_allclose((above + below) / 2, fit.predict(POINTS, what), rtol=1e-5)


def test_laplace_narrows_with_readings_and_widens_with_noise(straight):
    problem, observations = straight
    protocol = Protocol((Adam(3),), architecture=Architecture(width=4, depth=1))
    fit = train(problem, observations, protocol, 1, watcher=Quiet())
    width = lambda fit: np.diff(intervals(fit).unknowns["k"])[0]  # noqa: E731
    half = replace(fit, observations=observations.take(slice(0, None, 2)))
    noisy = replace(
        fit, observations=replace(observations, values=fit.predicted_readings() + 3 * fit.misfits())
    )
    assert width(half) > 1.1 * width(fit)
    assert width(noisy) > 1.5 * width(fit)


@pytest.fixture(scope="module")
def unlearned(world):
    """A fit that is trained long enough for its intervals to mean something."""
    network = Architecture(width=10, depth=2)
    protocol = Protocol((Adam(600, rate=5e-3),), architecture=network)
    recipe = Recipe("tiny", ByMixture(), Schedule(), (Adam(300, rate=5e-3),))
    task = world.task("inversion", protocol=protocol, recipe=recipe)
    return run_method("ppinn", task)


def test_laplace_and_the_resamplings_agree_in_size_and_hold_the_truth(world, unlearned):
    assert unlearned.pruning is not None and unlearned.partition.noise.components == 2
    points = world.observations.points
    truth = np.exp(-points[:, 0])
    widths = {}
    for method in ("laplace", "bootstrap", "pruning"):
        options = {} if method == "laplace" else {"replicas": 5, "watcher": Quiet()}
        found = intervals(unlearned, method, **options)
        assert found.method == method and found.level == 0.9
        low, high = found.unknowns["k"]
        assert low < unlearned.unknowns["k"] < high
        # One draw of a 90 % interval may miss; three times its width must not.
        assert low - (high - low) < 1.0 < high + (high - low)
        below, above = found.band(points, "u")
        assert coverage(below, above, truth) > 0.5
        widths[method] = np.mean(above - below)
    assert max(widths.values()) < 4 * min(widths.values())


def test_a_plain_fit_is_less_certain_than_the_unlearned(unlearned):
    width = lambda fit: np.diff(intervals(fit).unknowns["k"])[0]  # noqa: E731
    assert width(unlearned.before) > 2 * width(unlearned)


def test_replicas_go_on_where_they_stopped(unlearned, tmp_path):
    options = {"replicas": 2, "share": 0.1, "directory": tmp_path}
    first = intervals(unlearned, "bootstrap", watcher=Quiet(), **options)
    again = intervals(unlearned, "bootstrap", watcher=Quiet(), **options)
    assert first.unknowns == again.unknowns
    assert {path.name for path in tmp_path.iterdir()} <= {"replica0", "replica1"}


@pytest.mark.parametrize("method", ["dpinn", "bpinn", "ensemble"])
def test_members_give_intervals_of_their_spread(world, method):
    fit = world.fit(method, "inversion")
    found = intervals(fit, "members", level=0.5)
    samples = fit.predict_samples(POINTS[:4], "u")
    count = len(samples)
    assert found.details == {"members": count}
    below, above = found.band(POINTS[:4], "u")
    half = t.ppf(0.75, count - 1) * samples.std(axis=0, ddof=1) * np.sqrt(1 + 1 / count)
    np.testing.assert_allclose((above - below) / 2, half, rtol=1e-5)
    quality = judged(found, fit, POINTS[:4], {"u": np.exp(-POINTS[:4, 0])}, {"k": 1.0})
    assert set(quality) == {"u", "unknowns"} and quality["u"].level == 0.5


def test_an_interval_from_few_samples_covers_what_it_claims():
    random = np.random.default_rng(0)
    samples = random.standard_normal((20_000, 4))
    middle, deviation = samples[:, :3].mean(axis=1), samples[:, :3].std(axis=1, ddof=1)
    low, high = around(middle, deviation, 3, 0.9, True)
    assert coverage(low, high, samples[:, 3]) == pytest.approx(0.9, abs=0.01)


def test_jitter_perturbs_scores_by_chance():
    random = np.random.default_rng(0)
    retained = np.arange(30) % 2 == 0
    view = LayerView(random.random((30, 6)), retained, np.ones(6), np.ones(6), seed=4)
    plain = criterion("std")
    np.testing.assert_array_equal(Jittered(plain, 0.0)(view), plain(view))
    shaken = Jittered(plain, 0.5)
    np.testing.assert_array_equal(shaken(view), shaken(view))
    assert (shaken(view) != shaken(replace(view, seed=5))).all()
    assert "deviation" in shaken.__name__


def test_misuse_is_one_sentence(world, unlearned):
    with pytest.raises(UserError, match="did you mean 'laplace'"):
        intervals(unlearned, "laplac")
    with pytest.raises(UserError, match="between 0 and 1"):
        intervals(unlearned, level=90.0)
    with pytest.raises(UserError, match="ask for another method"):
        intervals(unlearned, "members")
    with pytest.raises(UserError, match="method='members'"):
        intervals(world.fit("ensemble", "inversion"), "laplace")
    with pytest.raises(UserError, match="was not pruned"):
        intervals(unlearned.before, "pruning")
    with pytest.raises(UserError, match="2 replicas or more"):
        intervals(unlearned, "bootstrap", replicas=1)
    with pytest.raises(UserError, match="prior above zero"):
        intervals(unlearned, "laplace", prior=0.0)
