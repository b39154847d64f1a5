"""Dropout: its rate, its consistency between derivatives, and the networks it thins."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn.network import Architecture, Plan, make_model
from unpinn.problem import Derivative
from unpinn.rivals._dropout import thinned, with_dropout
from unpinn.training import Adam, Lbfgs, Protocol
from unpinn.training._dropout import dropout, kept


@pytest.fixture(scope="module")
def model(world):
    return make_model(world.problem, None, Architecture(width=20, depth=2), 0)


def test_masks_are_dropped_at_the_rate_and_independent():
    draw = lambda seed, layer: np.asarray(  # noqa: E731
        kept(jnp.array([seed, 99], jnp.uint32), layer, 64, 512, 0.1), float
    )
    masks = np.stack([draw(seed, layer) for seed in range(8) for layer in range(3)])
    assert masks.mean() == pytest.approx(0.9, abs=0.002)
    # Of neurons, of points, and of both together: no more variation than chance allows.
    centred = (masks - 0.9) / 0.3
    assert np.std(centred.mean(axis=2)) == pytest.approx(1 / np.sqrt(512), rel=0.1)
    assert np.std(centred.mean(axis=1)) == pytest.approx(1 / np.sqrt(64), rel=0.1)
    between = np.einsum("kin,kjn->kij", centred, centred)[:, ~np.eye(64, dtype=bool)] / 512
    assert np.std(between) == pytest.approx(1 / np.sqrt(512), rel=0.1)
    assert abs(np.mean(masks[0] != masks[1]) - 0.18) < 0.02


def test_a_points_derivatives_are_those_of_its_thinned_network(model):
    """The mask of one point is the same for all channels: finite differences agree with them."""
    points = jnp.array([[0.7]])
    wanted = frozenset({Derivative("u", (0,)), Derivative("u", (1,)), Derivative("u", (2,))})
    hook = lambda: dropout(jax.random.key(3), 0.3)  # noqa: E731
    found = model.derivatives(points, wanted, hook())
    step = 0.05
    at = lambda x: float(  # noqa: E731
        model.derivatives(jnp.array([[x]]), wanted, hook())[Derivative("u", (0,))][0]
    )
    low, middle, high = at(0.7 - step), at(0.7), at(0.7 + step)
    assert float(found[Derivative("u", (1,))][0]) == pytest.approx(
        (high - low) / 2 / step, rel=0.02
    )
    curvature = (high - 2 * middle + low) / step**2
    assert float(found[Derivative("u", (2,))][0]) == pytest.approx(curvature, rel=0.05)
    plain = model.derivatives(points, wanted)
    assert float(plain[Derivative("u", (0,))][0]) != middle


def test_masks_differ_between_points_and_keys(model):
    plan = Plan(1)
    points = jnp.zeros((50, 1))
    values = lambda key: np.asarray(  # noqa: E731
        model.network.propagate(points, plan, dropout(jax.random.key(key), 0.2)).value
    )
    assert len(np.unique(values(0))) > 40
    assert (values(0) != values(1)).mean() > 0.9


def test_thinned_networks_are_unbiased_and_smooth(model):
    members = thinned(model, 0.1, 200, jax.random.key(0))
    masks = np.asarray(members.network.masks[0].array)
    assert masks.shape == (200, 20)
    assert set(np.unique(masks.round(4))) == {0.0, np.float32(1 / 0.9).round(4)}
    assert masks.mean() == pytest.approx(1.0, abs=0.03)
    assert len(members.network.masks[1].array) == 200


def test_removed_neurons_stay_removed(model):
    masks = [np.asarray(mask.array).copy() for mask in model.network.masks]
    masks[0][:5] = 0.0
    pruned = replace(model, network=model.network.with_masks(masks))
    members = thinned(pruned, 0.1, 20, jax.random.key(0))
    assert (np.asarray(members.network.masks[0].array)[:, :5] == 0).all()


def test_every_stage_drops_and_lbfgs_gets_new_masks():
    protocol = Protocol((Adam(10, groups=("data",)), Lbfgs(25)))
    stages = with_dropout(protocol, 0.1, 10).stages
    assert [(s.kind, s.length, s.dropout) for s in stages] == [
        ("adam", 10, 0.1), ("lbfgs", 10, 0.1), ("lbfgs", 10, 0.1), ("lbfgs", 5, 0.1),
    ]  # fmt: skip
    assert sum(stage.length for stage in stages) == protocol.epochs


def test_members_of_a_fit_are_its_thinned_networks(world):
    fit = world.fit("dpinn", "assimilation")
    points = world.observations.points
    samples = fit.predict_samples(points, "u")
    assert samples.shape == (5, 40) and samples.std(axis=0).min() > 0
    np.testing.assert_allclose(fit.predict(points)["u"], samples.mean(axis=0))
