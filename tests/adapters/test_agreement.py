"""One network through this package, PyTorch and DeepXDE: the same partition, neurons and fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")

import unpinn  # noqa: E402
from unpinn.adapters.torch import to_fit  # noqa: E402
from unpinn.problem import Points, observe  # noqa: E402
from unpinn.training import Adam  # noqa: E402
from unpinn.unlearning import ByMixture, Recipe, Schedule  # noqa: E402

from .conftest import RATE, deepxde_model, exact  # noqa: E402

EPOCHS, PHYSICS = 150, 0.05
GRID = np.linspace(0, 2, 50)[:, None]
RECIPE = Recipe(
    "agreement", ByMixture(), Schedule(fraction=0.1, steps=4),
    (Adam(epochs=EPOCHS, rate=0.005, precision="float64"),), weights={"equations": PHYSICS},
)  # fmt: skip


# All attempts, several rounds, and refinement in each.
WHOLE = replace(
    RECIPE, schedule=Schedule(fraction=0.1, steps=4),
    stages=(Adam(epochs=200, rate=0.01, precision="float64"),),
    later=(Adam(epochs=60, rate=0.005, precision="float64"),), weights={}, tolerance=0.05,
    rounds=2, stiffening=5.0, firm=0.0, accept=True,
)  # fmt: skip


def native(case, recipe=RECIPE):
    problem = unpinn.Problem(
        coordinates={"x": (0, 2)},
        fields=["u", "v"],
        unknowns=[unpinn.Scalar("k", initial=0.5)],
        equations={"decay": lambda u, k: u.x + k * u, "growth": lambda u, v: v.x - u},
        collocation=Points(case.points),
    )
    read = observe(problem, case.points, dict(zip("uv", case.values.T, strict=True)))
    module = case.copy()
    fit = to_fit(module, problem, read, {"k": float(module.k.detach())})
    return unpinn.unlearn(fit, recipe)


def through_deepxde(case, double):
    from unpinn.adapters.deepxde import unlearn

    # Each term is a mean of its own, where this package takes one over all equations or readings.
    weights = [PHYSICS / 2, PHYSICS / 2, 0.5, 0.5]
    model, k = deepxde_model(case, compile_with={"loss_weights": weights})
    return unlearn(model, RECIPE, unknowns={"k": k})


@pytest.fixture(scope="module")
def own(case):
    return native(case)


@pytest.fixture(params=["torch", "deepxde"])
def other(request, case):
    if request.param == "torch":
        return case.unlearn(recipe=RECIPE)
    return through_deepxde(case, request.getfixturevalue("double"))


def test_every_path_gives_the_same_partition_neurons_and_fit(case, own, other):
    mine, theirs = own.partition, other.partition
    assert 0.5 * case.is_bad.sum() < mine.suspect.sum() < len(case.points)
    assert mine.retained.tolist() == theirs.retained.tolist()
    assert mine.rule == theirs.rule
    for part in ("misfit", "residual", "score", "weight", "posterior"):
        found, expected = getattr(theirs, part), getattr(mine, part)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=part)

    assert own.pruning.after == other.pruning.after == (9, 9)
    for step, same in zip(own.pruning.steps, other.pruning.steps, strict=True):
        assert [list(r) for r in step.removed] == [list(r) for r in same.removed]
        for scores, found in zip(step.scores, same.scores, strict=True):
            np.testing.assert_allclose(found, scores, rtol=1e-8)

    # Adam takes the same steps everywhere, so far less than the noise of seeds is left.
    fields = np.stack(list(own.predict(GRID).values()), axis=1)
    found = other.module(torch.as_tensor(GRID)).detach().numpy()
    np.testing.assert_allclose(found, fields, atol=1e-6)
    assert other.unknowns["k"] == pytest.approx(own.unknowns["k"], abs=1e-6)
    before = case.module(torch.as_tensor(GRID)).detach().numpy()
    assert rms(found - exact(GRID)) < 0.5 * rms(before - exact(GRID))
    assert abs(own.unknowns["k"] - RATE) < abs(float(case.module.k.detach()) - RATE)


@pytest.mark.slow
def test_both_paths_try_the_same_and_end_with_the_same(case):
    """Attempts, rounds, steps of refinement, and what comes of them."""
    own, other = native(case, WHOLE), case.unlearn(recipe=WHOLE)
    mine, theirs = own.details["tried"], other.tried
    for name in ("accepted", "rounds"):
        assert [attempt[name] for attempt in mine] == [attempt[name] for attempt in theirs]
    for attempt, same in zip(mine, theirs, strict=True):
        assert attempt["unknowns"]["k"] == pytest.approx(same["unknowns"]["k"], abs=1e-5)
    assert (own.pruning and own.pruning.after) == (other.pruning and other.pruning.after)
    assert own.details["stiffened"] == other.tried[-1]["stiffened"] > 0
    fields = np.stack(list(own.predict(GRID).values()), axis=1)
    found = other.module(torch.as_tensor(GRID)).detach().numpy()
    np.testing.assert_allclose(found, fields, atol=1e-5)


def rms(error):
    return float(np.sqrt(np.mean(error**2)))
