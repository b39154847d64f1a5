"""What a reconstruction is told: every measure of every field and unknown."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.benchmarks import BENCHMARKS, Quantity, benchmark
from unpinn.evaluation import relative_l2
from unpinn.network import Architecture
from unpinn.network._model import make_model

MEASURES = {"l2re", "l1re", "mse", "max_error", "rms_truth", "fmse_low", "fmse_mid", "fmse_high"}
HEADLINES = {
    "pinv": ("a", "u"),
    "hinv": ("a", "u"),
    "nsinv": ("p", "velocity"),
    "ebinv": ("alpha", "u"),
    "winv": ("c", "u"),
    "poisson": ("u", "u"),
    "heat": ("u", "u"),
    "heat-forced": ("u", "u"),
    "wave": ("u", "u"),
    "stokes": ("velocity", "velocity"),
}


@pytest.fixture(scope="module")
def bench_of():
    return lambda name: benchmark(name, wake="embedded" if name == "nsinv" else None)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_truth_has_no_error(name, bench_of):
    bench = bench_of(name)
    found = bench.evaluate(bench.truth, bench.true_scalars)
    assert (found["quantity"], found["state"]) == HEADLINES[name]
    assert found["l2re"] < 1e-12 and found["state_l2re"] < 1e-12
    for errors in found["fields"].values():
        assert errors["mse"] < 1e-24 and errors["max_error"] < 1e-12
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("name", BENCHMARKS)
def test_an_error_of_a_tenth_is_a_tenth_everywhere(name, bench_of):
    bench = bench_of(name)

    def tenth(points):
        return {n: 1.1 * values for n, values in bench.truth(points).items()}

    scalars = {n: 1.1 * value for n, value in bench.true_scalars.items()}
    found = bench.evaluate(tenth, scalars)
    assert found["l2re"] == pytest.approx(0.1)
    assert found["state_l2re"] == pytest.approx(0.1)
    assert found["headline"]["l1re"] == pytest.approx(0.1)
    for label, errors in found["fields"].items():
        assert set(errors) >= MEASURES, label
        assert errors["l2re"] == pytest.approx(0.1)
        assert errors["mse"] == pytest.approx((0.1 * errors["rms_truth"]) ** 2)
    for label, errors in found["unknowns"].items():
        true = bench.true_scalars[label]
        assert errors["absolute"] == pytest.approx(0.1 * true)
        assert errors["squared"] == pytest.approx(0.01 * true**2)
        assert errors["value"] == pytest.approx(1.1 * true) and errors["truth"] == true


@pytest.mark.parametrize("name", ["nsinv", "stokes"])
def test_a_constant_in_the_pressure_counts_raw_but_not_shifted(name, bench_of):
    bench = bench_of(name)

    def raised(points):
        truth = bench.truth(points)
        return {**truth, "p": truth["p"] + 5}

    found = bench.evaluate(raised, bench.true_scalars)
    assert found["fields"]["p"]["mse"] == pytest.approx(25)
    assert found["fields"]["p_shifted"]["l2re"] < 1e-12
    assert found["l2re"] < 1e-12


def test_a_function_of_time_in_the_pressure_counts_but_not_where_every_time_has_its_own_mean(
    bench_of,
):
    bench = bench_of("nsinv")

    def drifting(points):
        truth = bench.truth(points)
        return {**truth, "p": truth["p"] + np.sin(points[:, 2])}

    found = bench.evaluate(drifting, bench.true_scalars)
    assert found["fields"]["p_shifted"]["l2re"] == found["l2re"] > 1
    assert found["fields"]["p_shifted_at_t"]["l2re"] < 1e-12


def test_velocity_is_judged_as_one_vector(bench_of):
    bench = bench_of("stokes")
    truth = bench.grid_truth()

    def still(points):
        return {n: values * (n != "v") for n, values in bench.truth(points).items()}

    expected = relative_l2(np.r_[truth["u"], 0 * truth["v"]], np.r_[truth["u"], truth["v"]])
    found = bench.evaluate(still)
    assert found["l2re"] == pytest.approx(expected)
    assert found["fields"]["v"]["l2re"] == pytest.approx(1)
    assert found["fields"]["u"]["l2re"] == 0


def test_the_wake_is_tested_on_unseen_rows_only(bench_of):
    bench = bench_of("nsinv")
    tested = bench.test_rows()
    seen = {point.tobytes() for point in bench.reading_points()}

    def wrong_where_seen(points):
        truth = bench.truth(points)
        known = np.array([point.tobytes() in seen for point in points])
        return {n: np.where(known, 100.0, values) for n, values in truth.items()}

    found = bench.evaluate(wrong_where_seen, bench.true_scalars)
    assert found["state_l2re"] < 1e-12
    assert found["fields"]["p"]["max_error"] < 1e-12
    # A shift by the mean over the tested rows must not see the others either.
    assert found["l2re"] < 1e-12
    # A spectrum needs the whole grid.
    assert found["fields"]["p"]["fmse_low"] > 1
    assert tested.sum() == 345_000


def test_spectra_are_taken_on_the_problems_own_grid(bench_of):
    bench = bench_of("pinv")

    def wavy(points):
        truth = bench.truth(points)
        wave = np.cos(2 * np.pi * 7 * np.rint(points[:, 0] * 99) / 100)
        return {**truth, "a": truth["a"] + wave}

    errors = bench.evaluate(wavy)["fields"]["a"]
    assert errors["fmse_mid"] > 100 and errors["fmse_low"] < 1e-8 and errors["fmse_high"] < 1e-8


@pytest.mark.parametrize("name", ["pinv", "ebinv"])
def test_a_model_is_judged_like_its_predictions(name, bench_of):
    bench = bench_of(name)
    model = make_model(bench.problem, None, Architecture(width=8, depth=2), seed=1, scaled=False)

    def predict(points):
        columns = np.asarray(model.predict(jnp.asarray(points, jnp.float32)))
        return dict(zip(model.layout.columns, columns.T, strict=True))

    unknowns = {n: float(v) for n, v in model.unknowns().items()}
    found, expected = bench.evaluate(model), bench.evaluate(predict, unknowns)
    assert found["l2re"] == pytest.approx(expected["l2re"], rel=1e-5)
    assert found["state_l2re"] == pytest.approx(expected["state_l2re"], rel=1e-5)


def test_a_fit_is_judged_by_what_it_predicts_and_found(bench_of):
    bench = bench_of("winv")

    class Found:
        unknowns = {"c": 2.5}  # noqa: RUF012

        def predict(self, points):
            return bench.truth(points)

    assert bench.evaluate(Found())["l2re"] == pytest.approx(0.25)
    assert bench.evaluate(Found(), {"c": 2.0})["l2re"] == 0


@pytest.mark.parametrize(
    ("source", "unknowns", "culprit"),
    [
        (lambda points: {"x": points[:, 0]}, {"alpha": 1.0}, "no 'u'"),
        (lambda points: {"u": points}, {"alpha": 1.0}, "one value a point"),
        (lambda points: {"u": points[:, 0]}, {}, "'alpha' of ebinv"),
        (3, {"alpha": 1.0}, "a int cannot be judged"),
        (lambda points: {"u": np.full(len(points), np.nan)}, {"alpha": 1.0}, "NaN"),
    ],
)
def test_what_cannot_be_judged_is_refused(source, unknowns, culprit, bench_of):
    with pytest.raises(UserError, match=culprit):
        bench_of("ebinv").evaluate(source, unknowns)


def test_truth_asks_for_points_of_the_right_dimension(bench_of):
    with pytest.raises(UserError, match="x, t"):
        bench_of("wave").truth(np.zeros((4, 3)))


def test_a_quantity_of_the_headline_is_a_field_or_an_unknown(bench_of):
    for name in BENCHMARKS:
        bench = bench_of(name)
        for quantity in (bench.headline, bench.state, *bench.beside):
            assert isinstance(quantity, Quantity)
            assert set(quantity.of) <= set(bench.exact) | set(bench.true_scalars)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own counts")
def test_the_largest_grid_is_judged_within_five_seconds_and_two_gigabytes(tmp_path):
    import subprocess

    # The kernel's own count of the process, which `getrusage` mixes with its parent's.
    script = (
        "import re, time\n"
        "from pathlib import Path\n"
        "from unpinn.benchmarks import benchmark\n"
        "from unpinn.network._model import Architecture, make_model\n"
        "bench = benchmark('nsinv', wake='embedded')\n"
        "bench.readings(42)\n"
        "model = make_model(bench.problem, None, Architecture(), seed=1, scaled=False)\n"
        "begin = time.process_time()\n"
        "bench.evaluate(model)\n"
        "seconds = time.process_time() - begin\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(seconds, 1024 * int(re.findall(r'VmHWM:\\s*(\\d+)', status)[0]))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    seconds, memory = map(float, result.stdout.split())
    assert seconds < 5
    assert memory < 2e9
