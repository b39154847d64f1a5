"""Importance by name, each against its formula; controls; a criterion of one's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.unlearning import CRITERIA, LayerView, criterion

READINGS, NEURONS = 40, 7


@pytest.fixture(scope="module")
def view() -> LayerView:
    random = np.random.default_rng(0)
    return LayerView(
        random.standard_normal((READINGS, NEURONS)) * np.linspace(0.1, 2, NEURONS) - 0.3,
        random.random(READINGS) < 0.6,
        random.random(NEURONS),
        random.random(NEURONS),
        0.01,
    )


def means(view: LayerView, neuron: int) -> tuple[float, float]:
    """A neuron's mean over the suspect and over the retained readings, added up one by one."""
    values = view.activations[:, neuron].tolist()
    bad = [v for v, kept in zip(values, view.retained, strict=True) if not kept]
    good = [v for v, kept in zip(values, view.retained, strict=True) if kept]
    return sum(bad) / len(bad), sum(good) / len(good)


def by_hand(name: str, view: LayerView, neuron: int) -> float:
    values = view.activations[:, neuron].tolist()
    mean = sum(values) / READINGS
    variance = sum((v - mean) ** 2 for v in values) / READINGS
    suspect, retained = means(view, neuron)
    kept = [v for v, is_kept in zip(values, view.retained, strict=True) if is_kept]
    spread = (sum((v - retained) ** 2 for v in kept) / len(kept)) ** 0.5
    return {
        "bias": (suspect - retained) ** 2 / (variance + view.epsilon),
        "directed": suspect - retained,
        "abs": sum(abs(v) for v in values) / READINGS,
        "rms": (sum(v * v for v in values) / READINGS) ** 0.5,
        "freq": sum(v > 0 for v in values) / READINGS,
        "std": variance**0.5,
        "magnitude": -view.incoming[neuron] * view.outgoing[neuron],
        "useless": -spread * view.outgoing[neuron],
    }[name]


@pytest.mark.parametrize("name", [name for name in CRITERIA if name != "random"])
def test_a_criterion_is_what_its_formula_says(name, view):
    expected = [by_hand(name, view, neuron) for neuron in range(NEURONS)]
    np.testing.assert_allclose(criterion(name)(view), expected, rtol=1e-10)


def test_chance_is_a_matter_of_the_seed_alone(view):
    random = criterion("random")
    assert random(view).shape == (NEURONS,)
    blind = replace(view, activations=np.zeros_like(view.activations))
    np.testing.assert_array_equal(random(view), random(blind))
    assert (random(view) != random(replace(view, seed=1))).all()


@pytest.mark.parametrize("everything", [True, False])
def test_without_two_parts_no_neuron_belongs_to_either(view, everything):
    alone = replace(view, retained=np.full(READINGS, everything))
    for name in ("bias", "directed"):
        assert criterion(name)(alone).tolist() == [0.0] * NEURONS


def test_the_printed_score_does_not_rank_constant_neurons_first(view):
    # What makes constants a case of their own: their shift and variance both vanish.
    still = view.activations.copy()
    still[:, 3] = 0.9
    score = criterion("bias")(replace(view, activations=still))
    assert score[3] == pytest.approx(0) and score[3] == score.min()


def test_epsilon_keeps_small_variances_from_deciding(view):
    tiny = view.activations.copy()
    tiny[:, 2] = 1e-6 * ~view.retained
    bare = criterion("bias")(replace(view, activations=tiny, epsilon=1e-20))
    kept = criterion("bias")(replace(view, activations=tiny, epsilon=1e-3))
    assert bare.argmax() == 2 and kept.argmin() == 2


def test_a_function_is_a_criterion():
    def mine(view):
        return view.outgoing

    assert criterion(mine) is mine


@pytest.mark.parametrize(("name", "hint"), [("biass", "did you mean 'bias'"), ("zzz", "useless")])
def test_an_unknown_name_is_told_with_the_known_ones(name, hint):
    with pytest.raises(UserError, match=hint):
        criterion(name)
