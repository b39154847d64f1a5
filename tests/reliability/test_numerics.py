"""Numbers at the edge: each case has one outcome, and what went wrong says so where it is seen."""

from __future__ import annotations

import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.network import Architecture
from unpinn.problem import Condition, Grid, Observations, Problem, Scalar, observe
from unpinn.report._warnings import warnings_of
from unpinn.training import Adam, Lbfgs, Partition, Protocol, Quiet, Status, train
from unpinn.unlearning import ByMixture, ByShare, ByThreshold, Recipe, Schedule, unlearn

TINY = Architecture(width=6, depth=1)
X = np.linspace(0, 1, 24)
SHORT = (Adam(epochs=4, rate=1e-2),)
BRIEF = Recipe("brief", ByShare(0.7), Schedule(steps=2), (Adam(epochs=3, rate=1e-2),))


def decay(u, k):
    return u.x + k * u


def start(u):
    return u - 1.0


def pose(low=0.0, high=1.0, bounds=(None, None), equation=decay) -> Problem:
    return Problem(
        coordinates={"x": (low, high)},
        fields=["u"],
        unknowns=[Scalar("k", initial=1.0 / (high - low), bounds=bounds)],
        equations={"decay": equation},
        conditions=[Condition("start", start, at={"x": low})],
        collocation=Grid(8),
        name="decay",
    )


def fitted(problem, values, points=X, stages=SHORT, **options):
    observations = values
    if not isinstance(values, Observations):
        observations = observe(problem, np.asarray(points)[:, None], values)
    protocol = Protocol(tuple(stages), scaled=options.pop("scaled", True), architecture=TINY)
    return train(problem, observations, protocol, watcher=Quiet(), **options)


def cleaned(fit, recipe=BRIEF, **options):
    return unlearn(fit, recipe, watcher=Quiet(), **options)


def is_sound(fit) -> bool:
    """Every number of a model, of its predictions and of its partition is one."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(fit.model)]
    arrays += [fit.predict(fit.observations.points, "u"), np.array(list(fit.unknowns.values()))]
    if fit.partition is not None:
        arrays += [fit.partition.score, fit.partition.weight]
    return all(np.isfinite(array).all() for array in arrays)


NOISY = np.exp(-X) + 0.05 * np.random.default_rng(0).standard_normal(24)


# -- readings ---------------------------------------------------------------------------------


def test_a_quantity_that_was_not_read_counts_for_nothing():
    problem = Problem(
        coordinates={"x": (0, 1)},
        fields=["u", "v"],
        equations={"slope": lambda u, v: u.x - v},
        collocation=Grid(8),
    )
    values = np.stack([NOISY, -NOISY], axis=1)
    values[::3, 1] = np.nan
    values[1::3, 0] = np.nan
    fit = fitted(problem, observe(problem, X[:, None], values))
    found = cleaned(fit)
    assert fit.status.good and is_sound(fit) and is_sound(found)
    np.testing.assert_array_equal(np.isnan(fit.misfits()), np.isnan(values))
    # What stands in the place of what was not read has no say.
    term = fit.history["data"]
    other = replace(fit.observations, values=np.where(np.isnan(values), -np.inf, values))
    np.testing.assert_array_equal(fitted(problem, other).history["data"], term)


def test_readings_without_a_number_among_them_are_refused():
    nothing = Observations(X[:, None], np.full((24, 1), np.nan), ("u",))
    with pytest.raises(UserError, match="no reading is left to train on"):
        fitted(pose(), nothing)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_readings_that_never_vary(value):
    fit = fitted(pose(), np.full(24, value))
    assert fit.status.good and is_sound(fit)
    # Nothing varies, so one unit is what was read, or one.
    assert fit.model.layout.scale == (value or 1.0,)
    found = cleaned(fit, replace(BRIEF, rule=ByMixture(), tolerance=0.05))
    assert found.status.good and is_sound(found)


def test_one_reading_is_trained_on_and_never_called_bad():
    fit = fitted(pose(), [0.8], points=[0.5])
    assert fit.status.good and is_sound(fit)
    found = cleaned(fit, replace(BRIEF, rule=ByMixture(), accept=True))
    assert found.status.code == "kept" and found.partition.retained.all()
    # Told to go on by a share, it keeps the one that there is.
    found = cleaned(fit)
    assert found.partition.retained.all() and is_sound(found)
    assert found.details["evidence"]["error"] == float("inf")


@pytest.mark.slow
def test_readings_at_one_place_are_averaged_by_the_fit():
    problem = pose()
    same = fitted(problem, [0.4, 0.8], points=[0.5, 0.5], stages=[Adam(epochs=30, rate=1e-2)])
    mean = fitted(problem, [0.6, 0.6], points=[0.5, 0.5], stages=[Adam(epochs=30, rate=1e-2)])
    assert same.status.good and is_sound(same)
    # Their units differ, so only what they agree on is compared: both go for the middle.
    there = [abs(float(f.predict([[0.5]], "u")[0]) - 0.6) for f in (same, mean)]
    assert max(there) < 0.3
    assert is_sound(cleaned(same)) and cleaned(same).partition.retained.sum() == 1


def test_noise_of_zero_makes_one_kind_and_the_least_weight_of_the_equations():
    fit = fitted(pose(), NOISY)
    exact = replace(fit.observations, values=fit.predicted_readings())
    perfect = replace(fit, observations=exact)
    found = cleaned(perfect, replace(BRIEF, rule=ByMixture(), tolerance=0.05))
    assert found.partition.noise.low == found.partition.noise.high == 0.0
    assert found.partition.retained.all() and is_sound(found)
    assert found.details["weights"]["decay"] == pytest.approx(1e-4)


# -- partitions -------------------------------------------------------------------------------


def test_where_all_readings_are_suspect_nothing_is_trained():
    fit = fitted(pose(), NOISY)
    with pytest.raises(UserError, match="no reading scores below 1e-12"):
        cleaned(fit, replace(BRIEF, rule=ByThreshold(1e-12)))

    def everything(scores):
        nothing = np.zeros(len(scores.score), bool)
        return Partition(
            scores.misfit, scores.residual, scores.score, nothing, nothing.astype(float), 0.0, "all"
        )

    with pytest.raises(UserError, match="retains no reading"):
        cleaned(fit, replace(BRIEF, rule=everything))
    with pytest.raises(UserError, match="retains no reading"):
        cleaned(fit, partition=everything(cleaned(fit).partition))


@pytest.mark.parametrize("criterion", ["bias", "random"])
def test_where_none_is_suspect_pruning_goes_by_ties_and_all_is_retained(criterion):
    fit = fitted(pose(), NOISY)
    recipe = replace(BRIEF, rule=ByShare(1.0)).changed(criterion=criterion)
    found = cleaned(fit, recipe)
    assert len(found.suspects) == 0 and (found.partition.weight == 1).all() and is_sound(found)
    if criterion != "random":
        # No neuron belongs to suspects where there are none.
        assert np.nanmax(np.abs(found.pruning.steps[0].scores[0])) == 0


# -- domains and sizes ------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1e-9, pytest.param(1e9, marks=pytest.mark.slow)])
def test_domains_of_any_size_give_the_same_in_their_own_unit(width):
    usual = fitted(pose(), NOISY, stages=[Adam(epochs=30, rate=1e-2, rescale="reference")])
    other = fitted(
        pose(0.0, width), NOISY, points=X * width,
        stages=[Adam(epochs=30, rate=1e-2, rescale="reference")],
    )  # fmt: skip
    assert other.status.good and is_sound(other)
    assert other.unknowns["k"] * width == pytest.approx(usual.unknowns["k"], rel=1e-3)
    np.testing.assert_allclose(
        other.predict(X[:, None] * width, "u"), usual.predict(X[:, None], "u"), atol=1e-3
    )


@pytest.mark.parametrize("low", [1.7e9, -3e7])
def test_a_domain_far_from_zero_that_single_precision_cannot_resolve_is_refused(low):
    problem = pose(low, low + 50.0)
    points = low + 50.0 * X
    with pytest.raises(UserError, match=f"'x' runs from {low:.12g} to .* count it from its start"):
        fitted(problem, NOISY, points=points)
    # In double precision it is a domain like any other.
    double = fitted(problem, NOISY, points=points, stages=[Adam(epochs=2, precision="float64")])
    predicted = double.predict(points[:, None], "u")
    assert double.status.good and len(np.unique(predicted)) == 24


@pytest.mark.parametrize("size", [1e39, 1e-39])
def test_readings_that_single_precision_cannot_hold_are_refused(size):
    with pytest.raises(UserError, match=r"the readings of 'u' are as large as .* another unit"):
        fitted(pose(), size * NOISY)


def test_an_overflow_in_the_loss_is_a_divergence():
    # The square of 1e25 is beyond single precision where nothing is made non-dimensional.
    fit = fitted(pose(), 1e25 * NOISY, scaled=False)
    assert fit.status.code == "diverged" and not fit.status.good
    assert is_sound(fit) and "kept that state" in fit.status.reason


# -- unknowns ---------------------------------------------------------------------------------


def explosive(u, k):
    return u.x + jnp.exp(60.0 * k) * u


def test_an_unknown_that_explodes_is_a_divergence_and_what_is_kept_is_a_number():
    stages = [Adam(epochs=3, rate=1e-4), Adam(epochs=200, rate=5.0)]
    fit = fitted(pose(equation=explosive), NOISY, stages=stages)
    assert fit.status.code == "diverged" and is_sound(fit)
    assert np.isfinite(fit.unknowns["k"]) and not np.isfinite(fit.history["total"]).all()


def test_an_unknown_at_its_bound_is_told_by_whatever_comes_of_it():
    fit = fitted(
        pose(bounds=(0.999, 1.2)), np.exp(2 * X), stages=[Adam(epochs=60, rate=1.0)]
    )  # fmt: skip
    assert fit.details["at_bound"] == ["k"] and "ended at a bound" in fit.status.reason
    for told in (fit, cleaned(fit, replace(BRIEF, stages=(Adam(epochs=2, rate=1e-6),)))):
        assert told.details["at_bound"] == ["k"]
        assert any("ended at a bound" in warning.text for warning in warnings_of(told))


# -- guards -----------------------------------------------------------------------------------


def test_the_guard_against_dead_networks_is_told_in_record_and_report():
    problem = pose()
    fit = fitted(problem, NOISY)
    # One neuron carries everything; the criterion wants it first.
    hidden = fit.model.network.hidden[0]
    weight = jnp.asarray(np.where(np.arange(6) == 4, 2.0, 4e-3)[:, None], jnp.float32)
    model = eqx.tree_at(lambda m: m.network.hidden[0], fit.model, replace(hidden, weight=weight))
    frail = replace(fit, model=model)
    found = cleaned(frail, replace(BRIEF, schedule=Schedule(0.2, 3, criterion="std")))
    assert found.pruning.note.startswith("stopped before step 1")
    assert found.pruning.after == found.pruning.before == (6,)
    told = [w for w in warnings_of(found) if "While pruning" in w.text]
    assert len(told) == 1 and told[0].severity == "caution"


def test_a_fine_tuning_that_diverges_says_so():
    wild = replace(BRIEF, stages=(Adam(epochs=2, rate=1e-3), Adam(epochs=40, rate=1e14)))
    found = cleaned(fitted(pose(), NOISY), wild)
    assert found.status.code == "diverged" and is_sound(found)
    assert any(w.severity == "serious" and "diverged" in w.text for w in warnings_of(found))


def test_a_round_that_diverged_is_not_made_good_by_the_next():
    asked = []

    def alternating(scores):
        asked.append(1)
        return ByShare(0.5 if len(asked) % 2 else 0.8)(scores)

    recipe = replace(
        BRIEF, rule=alternating, rounds=2, later=(Adam(epochs=2, rate=1e-4),),
        # Beyond all numbers in its first step, so that the next round starts from a sound state.
        stages=(Adam(epochs=2, rate=1e-3), Adam(epochs=5, rate=3e38, decay=100.0)),
    )  # fmt: skip
    found = cleaned(fitted(pose(), NOISY), recipe)
    assert found.details["rounds"] == 2
    assert found.status.code == "diverged" and "then adam: all epochs" in found.status.reason


def test_a_bad_baseline_that_is_kept_is_still_a_bad_one():
    fit = replace(fitted(pose(), NOISY), status=Status("diverged", "adam: diverged after epoch 9"))
    found = cleaned(fit, replace(BRIEF, rule=ByMixture(), accept=True))
    assert found.status.code == "diverged" and not found.status.good
    assert "after epoch 9" in found.status.reason and "was kept" in found.status.reason


def test_quasi_newton_that_starts_where_nothing_is_finite_says_so():
    def root(u, x):
        return u.x - jnp.sqrt(x - 2.0)

    problem = Problem(coordinates={"x": (0, 1)}, fields=["u"], equations={"root": root},
                      collocation=Grid(5))  # fmt: skip
    fit = fitted(problem, NOISY, stages=[Lbfgs(iterations=3)])
    assert fit.status.code == "diverged"
    with pytest.raises(UserError, match="residual is not finite at some reading"):
        cleaned(fit)


# -- from the command to the picture ----------------------------------------------------------

STATED = """\
import unpinn

problem = unpinn.Problem(
    name="transport",
    coordinates={"x": (0.0, 1.0), "t": (0.0, 1.0)},
    fields=["u"],
    unknowns=[unpinn.Scalar("speed", initial=1.0)],
    equations={"transport": lambda u, speed: u.t + speed * u.x},
    collocation=unpinn.Grid(5, 5),
)
protocol = unpinn.Protocol(
    (unpinn.Adam(epochs=10, rate=1e-2), unpinn.Adam(epochs=50, rate=1e12)),
    architecture=unpinn.Architecture(width=6, depth=1),
)
"""


def test_a_failed_fit_says_so_in_record_page_pictures_and_exit_code(run_cli, tmp_path, monkeypatch):
    from unpinn.runs import _pictures

    written, real = [], _pictures._write

    def write(path, figure):
        written.append((path.stem, figure.get_supxlabel()))
        real(path, figure)

    monkeypatch.setattr(_pictures, "_write", write)
    (tmp_path / "wild.py").write_text(STATED)
    grid = [(x, t) for x in np.linspace(0, 1, 6) for t in np.linspace(0, 1, 6)]
    rows = "\n".join(f"{x},{t},{x - 2 * t}" for x, t in grid)
    (tmp_path / "sensors.csv").write_text(f"x,t,u\n{rows}\n")
    out = tmp_path / "run"
    # The readings are exact, so nothing is forgotten and the baseline, which diverged, is kept.
    result = run_cli("run", tmp_path / "wild.py", "--data", tmp_path / "sensors.csv", "--out", out)
    assert result.exit_code == 3, result.output
    assert "its numbers are not an answer" in result.stderr
    records = json.loads((out / "metrics.json").read_text())
    assert [record["status"] for record in records] == ["diverged", "diverged"]
    assert json.loads((out / "fit" / "fit.json").read_text())["status"]["code"] == "diverged"
    assert "Training diverged" in (out / "index.html").read_text()
    assert {"suspects", "loss-pinn"} <= {name for name, _ in written}
    assert all("P-PINN diverged" in told for _, told in written)
