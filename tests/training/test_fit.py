"""The record of a fit: what it predicts, and that nothing is lost on disk."""

from __future__ import annotations

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn._errors import UserError
from unpinn.network import Architecture, make_model
from unpinn.problem import Grid, Points, Problem, Scalar, observe
from unpinn.training import (
    Adam,
    History,
    Lbfgs,
    NoiseEstimate,
    Partition,
    Protocol,
    Pruning,
    PruningStep,
    load,
    train,
)

POINTS = np.array([[0.2, 0.1], [0.9, 0.8], [0.5, 0.5]])


# -- predictions ---------------------------------------------------------------------------


def by_differentiation(fit, orders: tuple[int, int]) -> np.ndarray:
    with precision.scope("float64"):
        model = precision.cast(fit.model, "float64")

        def u(x, t):
            return model.predict(jnp.stack([x, t])[None])[0, 0]

        for argument, order in enumerate(orders):
            for _ in range(order):
                u = jax.grad(u, argument)
        return np.asarray(jax.vmap(u)(*jnp.asarray(POINTS).T))


@pytest.mark.parametrize(
    ("what", "orders"),
    [("u", (0, 0)), ("u.x", (1, 0)), ("u.tt", (0, 2)), ("u.xt", (1, 1)), ("u.xxx", (3, 0))],
)
def test_any_derivative_is_predicted(fit, what, orders):
    expected = by_differentiation(fit, orders)
    np.testing.assert_allclose(fit.predict(POINTS, what), expected, rtol=1e-3, atol=1e-4)


def test_a_derivative_has_a_long_name_too(fit):
    short = fit.predict(POINTS, "u.xx")
    assert np.array_equal(fit.predict(POINTS, "u.d('x', 2)"), short)
    assert np.array_equal(fit.evaluate(lambda u: u.xx, POINTS)[:, 0], short)


def test_points_may_be_named(fit):
    named = {"t": POINTS[:, 1], "x": POINTS[:, 0]}
    assert np.array_equal(fit.predict(named)["u"], fit.predict(POINTS, "u"))
    line = fit.predict({"x": np.linspace(0, 1, 5), "t": 0.5}, "u")
    assert line.shape == (5,)


def test_any_function_is_evaluated(fit):
    value = fit.evaluate(lambda u, c, x: (u.t + c * u.x, x * u), POINTS)
    np.testing.assert_allclose(value[:, :1], fit.residual(POINTS), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(value[:, 1], POINTS[:, 0] * fit.predict(POINTS, "u"), rtol=1e-5)


def test_misfits_are_prediction_minus_reading(fit, case):
    expected = fit.predict(case.observations.points, "u") - case.observations.values[:, 0]
    np.testing.assert_allclose(fit.misfits()[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda fit: fit.predict(POINTS, "v"), "'v' is not a field"),
        (lambda fit: fit.predict(POINTS, "u.d(x"), "u.d(x is not a derivative"),
        (lambda fit: fit.predict(POINTS, "u.q"), "u.q is not a derivative"),
        (lambda fit: fit.predict(POINTS[:, :1]), "points must be an array"),
        (lambda fit: fit.predict({"x": [0.1]}), "lack the coordinate 't'"),
        (lambda fit: fit.evaluate(lambda w: w, POINTS), "'w'"),
        (lambda fit: fit.suspects, "no partition; call unpinn.unlearn"),
    ],
)
def test_what_cannot_be_predicted_is_said(fit, call, words):
    with pytest.raises(UserError, match=words.replace("(", r"\(")):
        call(fit)


# -- precision -----------------------------------------------------------------------------


def test_a_stage_works_in_its_precision_and_leaves_no_flag_behind(case, tiny):
    before = jax.config.jax_enable_x64
    low = train(*case, tiny(Adam(epochs=2)), seed=1)
    high = train(*case, tiny(Adam(epochs=2), Adam(epochs=2, precision="float64")), seed=1)
    assert jax.config.jax_enable_x64 == before
    assert (low.precision, high.precision) == ("float32", "float64")
    assert low.model.scalars["c"].dtype == np.float32
    assert high.model.network.output.weight.dtype == np.float64
    np.testing.assert_allclose(high.predict(POINTS, "u"), low.predict(POINTS, "u"), atol=0.05)


# -- history -------------------------------------------------------------------------------


def test_a_history_keeps_columns_in_their_place():
    history = History.empty(("total", "data", "c")).starting("adam")
    history = history.extended(("total", "c"), np.array([[1.0, 2.0], [3.0, 4.0]]))
    history = history.starting("lbfgs").extended(("total", "data", "c"), np.ones((1, 3)))
    assert len(history) == 3
    assert history.stages == (("adam", 0), ("lbfgs", 2))
    assert history["c"].tolist() == [2, 4, 1]
    assert np.isnan(history["data"][:2]).all()
    assert history.last() == {"total": 1.0, "data": 1.0, "c": 1.0}
    assert History.empty(("total",)).last() == {}


def test_histories_join():
    first = History.empty(("total", "a")).starting("adam").extended(("total", "a"), np.ones((2, 2)))
    second = History.empty(("total", "b")).starting("lbfgs").extended(("b",), np.zeros((1, 1)))
    both = first.joined(second)
    assert both.names == ("total", "a", "b")
    assert both.stages == (("adam", 0), ("lbfgs", 2))
    assert both["b"][2] == 0 and np.isnan(both["b"][:2]).all() and np.isnan(both["a"][2])


# -- disk ----------------------------------------------------------------------------------


def same(one, other) -> bool:
    return all(
        np.asarray(a).dtype == np.asarray(b).dtype
        and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


@pytest.fixture(scope="module")
def decorated(fit):
    """A fit with everything that a fit can carry."""
    count = len(fit.observations)
    generator = np.random.default_rng(0)
    retained = generator.random(count) > 0.3
    partition = Partition(
        generator.random(count), generator.random(count), generator.random(count), retained,
        retained.astype(float), float("inf"), "by hand", generator.random(count),
        NoiseEstimate(0.1, 1.0, 0.3, 2, 12.5),
    )  # fmt: skip
    scores = np.array([1.0, np.nan, 0.5, 2.0, 0.1, 0.2])
    step = PruningStep((0, 1), (scores, scores[::-1].copy()), (np.array([3]), np.array([0, 2])))
    pruning = Pruning("bias", (step,), (6, 6), (5, 4), True, (1, 0), "a note")
    arrays, rest = eqx.partition(fit.model, eqx.is_array)
    members = eqx.combine(jax.tree.map(lambda a: jnp.stack([a, a + 1]), arrays), rest)
    return dataclasses.replace(
        fit, partition=partition, pruning=pruning, before=fit, members=members, method="ppinn",
        recipe="mine", details={**fit.details, "note": "é", "numbers": [1, 2.5]},
    )  # fmt: skip


def test_everything_comes_back_from_disk(decorated, case, tmp_path):
    decorated.save(tmp_path / "fit")
    found = load(tmp_path / "fit", case.problem)
    for part in ("model", "members"):
        assert same(getattr(found, part), getattr(decorated, part))
    assert same(found.optimiser, decorated.optimiser) and len(found.optimiser) > 0
    assert found.unknowns == decorated.unknowns and "c" in found.unknowns
    assert found.protocol == decorated.protocol
    assert found.status == decorated.status
    assert found.versions == decorated.versions
    assert (found.seed, found.method, found.recipe) == (3, "ppinn", "mine")
    assert found.details == decorated.details and found.seconds == decorated.seconds
    assert found.history.names == decorated.history.names
    assert found.history.stages == decorated.history.stages
    assert np.array_equal(found.history.rows, decorated.history.rows, equal_nan=True)
    assert found.observations.fingerprint == case.observations.fingerprint
    assert found.partition.noise == decorated.partition.noise
    for name in ("misfit", "residual", "score", "retained", "weight", "posterior"):
        assert same(getattr(found.partition, name), getattr(decorated.partition, name))
    for name in ("threshold", "rule"):
        assert getattr(found.partition, name) == getattr(decorated.partition, name)
    assert same(
        [(s.scores, s.removed) for s in found.pruning.steps],
        [(s.scores, s.removed) for s in decorated.pruning.steps],
    )
    assert found.pruning.note == "a note" and found.pruning.after == (5, 4)
    assert found.before.before is None and found.before.unknowns == decorated.before.unknowns
    assert np.array_equal(found.predict(POINTS, "u.xx"), decorated.predict(POINTS, "u.xx"))


@pytest.mark.parametrize("kind", ["mlp", "modified", "residual", "fourier"])
def test_a_pruned_network_of_any_kind_comes_back(fit, case, tmp_path, kind):
    architecture = Architecture(kind=kind, width=6, depth=2)
    model = make_model(*case, architecture, seed=1)
    network = model.network.with_masks([np.array([1, 0, 1, 1, 0, 1.0])] * 2).compact()
    model = eqx.tree_at(lambda m: m.network, model, network)
    protocol = Protocol((Adam(epochs=1),), architecture=architecture)
    small = dataclasses.replace(fit, model=model, protocol=protocol, optimiser=())
    small.save(tmp_path)
    found = load(tmp_path, case.problem)
    assert found.model.network.widths == (4, 4)
    assert same(found.model, small.model)
    assert np.array_equal(found.predict(POINTS, "u.x"), small.predict(POINTS, "u.x"))


def test_numbered_sensors_stay_numbers(case, tmp_path, tiny):
    observations = dataclasses.replace(case.observations, sensor=np.arange(36) % 4)
    fit = train(case.problem, observations, tiny(Adam(epochs=1)))
    fit.save(tmp_path)
    assert load(tmp_path, case.problem).observations.fingerprint == observations.fingerprint


def test_a_benchmarks_fit_finds_its_problem(tmp_path, tiny):
    from unpinn.benchmarks import benchmark

    bench = benchmark("poisson")
    fit = train(bench.problem, bench.readings(1).observations, tiny(Adam(epochs=1)))
    fit.save(tmp_path)
    assert load(tmp_path).problem is bench.problem


def test_going_on_from_disk_is_going_on_from_memory(fit, case, tmp_path, tiny):
    fit.save(tmp_path)
    again = load(tmp_path, case.problem)
    more = tiny(Adam(epochs=7, rate=1e-2))
    one, other = (train(*case, more, seed=3, start=start) for start in (fit, again))
    assert same(one.model, other.model)
    assert np.array_equal(one.history.rows, other.history.rows)


def test_going_on_is_never_having_stopped(fit, case, tiny):
    more = train(*case, tiny(Adam(epochs=25, rate=1e-2)), seed=3, start=fit)
    whole = train(*case, tiny(Adam(epochs=65, rate=1e-2)), seed=3)
    assert np.array_equal(whole.history.rows[40:], more.history.rows)
    assert same(whole.model, more.model)


def test_going_on_with_the_model_alone_begins_a_new_memory(fit, case, tiny):
    fresh = train(*case, tiny(Adam(epochs=2, rate=1e-2)), seed=3, start=fit.model)
    kept = train(*case, tiny(Adam(epochs=2, rate=1e-2)), seed=3, start=fit)
    assert fresh.history["total"][0] == kept.history["total"][0]
    assert fresh.history["total"][1] != kept.history["total"][1]


def test_going_on_in_another_precision_or_by_another_optimiser(fit, case, tiny):
    high = train(*case, tiny(Adam(epochs=2, precision="float64")), start=fit)
    assert high.precision == "float64" and high.status.good
    quasi = train(*case, tiny(Lbfgs(iterations=3)), start=fit)
    assert quasi.history["total"][-1] < fit.history["total"][-1]


def test_what_is_on_disk_is_plain(decorated, tmp_path):
    decorated.save(tmp_path)
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"fit.json", "fit.safetensors"}
    about = json.loads((tmp_path / "fit.json").read_text())
    assert about["unknowns"] == decorated.unknowns


def damaged(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda d: damaged(d / "fit.json"), "not valid JSON"),
        (lambda d: damaged(d / "fit.safetensors"), "not a readable safetensors file"),
        (lambda d: (d / "fit.safetensors").unlink(), "no such file"),
        (lambda d: (d / "fit.json").write_text("{}"), "not a fit of this package"),
        (lambda d: (d / "fit.json").write_text("[1]"), "not a fit of this package"),
        (lambda d: (d / "fit.json").write_text('{"format": 99}'), "written in format 99"),
    ],
)
def test_a_damaged_fit_is_told_in_a_sentence(fit, case, tmp_path, harm, words):
    fit.save(tmp_path)
    harm(tmp_path)
    with pytest.raises(UserError, match=words):
        load(tmp_path, case.problem)


def test_a_fit_is_not_taken_for_another_problems(fit, case, tmp_path):
    fit.save(tmp_path)
    with pytest.raises(UserError, match="holds a fit of another problem"):
        load(tmp_path, dataclasses.replace(case.problem, collocation=Grid(3, 3)))
    with pytest.raises(UserError, match="pass that problem"):
        load(tmp_path)
    with pytest.raises(UserError, match="already holds a fit"):
        fit.save(tmp_path)
    fit.save(tmp_path, overwrite=True)


# -- unknowns ------------------------------------------------------------------------------


def test_an_unknown_that_ends_at_its_bound_is_reported(tiny):
    problem = Problem(
        coordinates={"x": (0, 1)},
        fields=["u"],
        unknowns=[Scalar("k", initial=1.09, bounds=(0.9, 1.1))],
        equations={"growth": lambda u, k: u.x - k},
        collocation=Points(np.linspace(0, 1, 9)),
    )
    points = np.linspace(0, 1, 12)[:, None]
    observations = observe(problem, points, 5 * points[:, 0])
    fit = train(problem, observations, tiny(Adam(epochs=4000, rate=5e-2)))
    assert 0.9 <= fit.unknowns["k"] <= 1.1
    assert fit.unknowns["k"] > 1.0999
    assert fit.details["at_bound"] == ["k"]
    assert "k ended at a bound" in fit.status.reason
