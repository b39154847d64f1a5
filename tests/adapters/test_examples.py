"""The DeepXDE examples pose what they say, with readings of which 60 % are bad."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra unpinn[torch]")
dde = pytest.importorskip("deepxde", reason="needs the extra unpinn[deepxde]")

from unpinn.adapters.deepxde._readings import find_observations, gather  # noqa: E402

FOLDER = Path(__file__).parents[2] / "examples" / "deepxde"
SOUGHT = {
    "diffusion": ["C", "u"],
    "elliptic": ["q", "u"],
    "lorenz": ["s", "r", "b", "state"],
    "wake": ["a", "b", "velocity"],
}


@pytest.fixture(autouse=True)
def there(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def wave(x):
    return torch.exp(-x[:, 1:]) * torch.sin(np.pi * x[:, :1])


def source(x):
    u = torch.sin(np.pi * x)
    return torch.cat([u, -(np.pi**2) * u], dim=1)


@pytest.mark.parametrize("name", SOUGHT)
def test_an_example_trains_and_judges(name):
    case = import_module(name).build(0)
    readings = gather(find_observations(case.model.data))
    assert len(readings.points) == len(case.is_bad) and 0.5 < case.is_bad.mean() < 0.7
    case.model.train(iterations=1, verbose=0)
    found = case.errors()
    assert list(found) == SOUGHT[name] and np.isfinite(list(found.values())).all()


@pytest.mark.parametrize(("name", "exact"), [("diffusion", wave), ("elliptic", source)])
def test_the_exact_solution_satisfies_the_examples_equation(name, exact):
    case = import_module(name).build(0)
    for unknown in case.unknowns.values():
        unknown.data.fill_(1.0)
    inputs = torch.as_tensor(case.model.data.geom.random_points(50)).requires_grad_(True)
    dde.grad.clear()
    residual = case.model.data.pde(inputs, exact(inputs))
    assert residual.abs().max().item() < 1e-4
    dde.grad.clear()
    wrong = case.model.data.pde(inputs, 1.1 * exact(inputs) ** 2)
    assert wrong.abs().max().item() > 0.1


@pytest.mark.slow
def test_unlearning_improves_an_example():
    import measure

    outcome = measure.run(import_module("elliptic").build, 42, scale=0.5)
    assert outcome.found > 0.9
    # Trained on for as long as all attempts took, so at least as long as the one that was kept.
    assert outcome.iterations >= 375 * sum(told["rounds"] for told in outcome.result.tried) > 0
    assert outcome.unlearned["u"] < outcome.own["u"]
    assert outcome.unlearned["u"] < outcome.trained_on["u"]
