"""One law for every method: a task in, a complete fit out, on either kind of protocol."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.rivals import METHODS, method_named, run_method
from unpinn.training import Fit, load

KINDS = ("inversion", "assimilation")
EXPECTED = {
    "pinn", "ppinn", "ppinn-paper", "ppinn-random", "ft", "rt", "dpinn", "bpinn", "lad", "huber",
    "student", "trimmed", "mad", "mixture", "heteroscedastic", "ensemble", "oracle",
    "oracle-pruned",
}  # fmt: skip
each_method = pytest.mark.parametrize("method", sorted(EXPECTED))


class Counter:
    """A watcher that counts, and interrupts at a chosen moment."""

    def __init__(self, stop: int | None = None):
        self.count, self.stop = 0, stop

    def __call__(self, moment):
        self.count += 1
        if self.count == self.stop:
            raise KeyboardInterrupt


def arrays_of(fit: Fit) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves((fit.model, fit.members))]


def same(first: Fit, second: Fit) -> bool:
    pairs = zip(arrays_of(first), arrays_of(second), strict=True)
    return all(a.tobytes() == b.tobytes() for a, b in pairs)


def test_every_method_is_registered_once():
    assert set(METHODS) == EXPECTED
    assert all(method.name == name and method.summary for name, method in METHODS.items())


@each_method
@pytest.mark.parametrize("kind", KINDS)
def test_it_gives_a_complete_fit(world, method, kind):
    fit = world.fit(method, kind)
    assert fit.method == method
    assert fit.status.good
    assert set(fit.unknowns) == {"k"} and np.isfinite(fit.unknowns["k"])
    fields = fit.predict(world.observations.points)
    assert set(fields) == {"u"} and np.isfinite(fields["u"]).all()
    assert np.isfinite(fit.misfits()).all() and fit.misfits().shape == (40, 1)
    assert fit.neurons_left > 0 and len(fit.history) > 0 and fit.seconds["total"] > 0
    assert fit.protocol.scaled == (kind == "inversion")


@each_method
def test_it_is_the_same_after_saving_and_loading(world, method, tmp_path):
    fit = world.fit(method, "assimilation")
    fit.save(tmp_path / "fit")
    back = load(tmp_path / "fit", world.problem)
    assert same(fit, back)
    assert back.unknowns == fit.unknowns and back.method == method
    points = world.observations.points
    np.testing.assert_array_equal(back.predict(points)["u"], fit.predict(points)["u"])


@each_method
def test_an_unknown_option_is_refused_by_name_before_training(world, method):
    watcher = Counter()
    task = world.task("inversion", options={"nonsense": 1}, watcher=watcher)
    with pytest.raises(UserError, match="'nonsense'"):
        run_method(method, task)
    assert watcher.count == 0


@each_method
def test_a_killed_run_goes_on_and_ends_bitwise_equal(world, method, tmp_path):
    baseline = None if method == "pinn" else world.fit("pinn", "assimilation")
    first = world.fit(method, "assimilation")
    whole = Counter()
    task = world.task("assimilation", method, baseline=baseline, watcher=whole)
    # The second run also shows that a seed decides everything.
    assert same(run_method(method, task), first)
    options = {"baseline": baseline, "directory": tmp_path}
    stopped = Counter(stop=max(1, whole.count * 2 // 3))
    with pytest.raises(KeyboardInterrupt):
        run_method(method, world.task("assimilation", method, watcher=stopped, **options))
    rest = Counter()
    fit = run_method(method, world.task("assimilation", method, watcher=rest, **options))
    assert same(fit, first)
    assert rest.count < whole.count


def test_another_seed_gives_another_network(world):
    other = run_method("pinn", world.task("inversion", seed=2))
    assert not same(other, world.fit("pinn", "inversion"))


@pytest.mark.parametrize(
    ("method", "option", "value"),
    [
        ("ppinn-paper", "share", 0.0),
        ("ppinn-paper", "physics", -1.0),
        ("ppinn-paper", "epochs", 0),
        ("dpinn", "rate", 1.0),
        ("dpinn", "passes", 0),
        ("dpinn", "redraw", 2.5),
        ("bpinn", "samples", 0),
        ("bpinn", "steps", "many"),
        ("bpinn", "nuts", 1),
        ("bpinn", "target", 1.0),
        ("bpinn", "sigma_data", -0.1),
        ("bpinn", "precision", "float16"),
        ("lad", "smooth", 0),
        ("huber", "tuning", float("nan")),
        ("student", "freedom", 0.0),
        ("student", "scale", "other"),
        ("trimmed", "share", 1.5),
        ("mad", "cut", True),
        ("mixture", "scale", "other"),
        ("heteroscedastic", "scale", None),
        ("ensemble", "members", 1),
    ],
)
def test_an_impossible_setting_is_refused_by_name_before_training(world, method, option, value):
    watcher = Counter()
    task = world.task("inversion", options={option: value}, watcher=watcher)
    with pytest.raises(UserError, match=f"^{method} needs .*'{option}'"):
        run_method(method, task)
    assert watcher.count == 0


@pytest.mark.parametrize("method", ["oracle", "oracle-pruned"])
@pytest.mark.parametrize("sigma", [None, np.ones(3), np.zeros(40)])
def test_the_oracle_must_be_told_sensible_noise(world, method, sigma):
    watcher = Counter()
    with pytest.raises(UserError, match="noise"):
        run_method(method, world.task("inversion", true_sigma=sigma, watcher=watcher))
    assert watcher.count == 0


def test_a_misspelt_method_is_told_what_was_meant():
    with pytest.raises(UserError, match="did you mean 'mixture'"):
        method_named("mixtur")
