r"""bpinn: samples of the posterior of all weights and unknowns, started at the plain network.

Prior: independent N(0, 1) on every trained number. Likelihood: every misfit of a reading, and every
residual of an equation or condition at a point, is Gaussian,
$$ \log p(\theta) = -\tfrac12\|\theta\|^2 - \sum_j \frac{N_j}{2\sigma_j^2}\,L_j(\theta), $$
with $L_j$ the mean square of term j over its $N_j$ entries. A scale that is not stated is the root
mean square that the plain network leaves, which is where the likelihood of one level is largest.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn._files import plain
from unpinn.network import Model
from unpinn.rivals import _checks as checks
from unpinn.rivals._chain import Chain, Sampler, effective_sample_size, run_chain
from unpinn.rivals._method import Method, Task, register
from unpinn.rivals._working import objective_of
from unpinn.training import Fit, Objective, Protocol
from unpinn.training._stages import flatten, rebuild

_STREAM = 70
# Where the plain network leaves nothing at all, a level below rounding would only stop the chain.
_LEAST_SCALE = 1e-6


def _run(task: Task) -> Fit:
    sampler, stated, kind = _settings(task)
    baseline = task.trained_baseline()
    begun = time.perf_counter()
    with precision.scope("float64"):
        model = precision.cast(baseline.model, kind)
    with precision.scope(kind):
        objective, sigma = likelihood(baseline, model, stated, kind)
        key = jax.random.fold_in(jax.random.key(task.seed), _STREAM)
        place = task.place("chain")
        chain = run_chain(
            sampler, log_posterior, (objective, model), flatten(model), key,
            file=None if place is None else Path(place) / "chain.safetensors",
            digest=_digest(task, baseline, sampler, sigma, kind), watcher=task.watcher,
        )  # fmt: skip
        kept = jnp.asarray(np.stack(chain.positions[sampler.burn_in :]))
        members = eqx.filter_vmap(rebuild, in_axes=(None, 0))(model, kept)
    seconds = {"total": time.perf_counter() - begun}
    fit = replace(baseline, model=model, members=members, before=baseline, seconds=seconds)
    return fit.with_details(**_told(fit, chain, sampler, sigma))


def likelihood(
    baseline: Fit, model: Model, stated: dict[str, float | None], kind: str
) -> tuple[Objective, dict[str, float]]:
    """The terms weighed so that they add up to minus the log likelihood, and their scales."""
    objective = objective_of(baseline, kind=kind)
    squares = np.asarray(_terms(objective, model), np.float64)
    counts = entries(objective)
    sigma = {}
    for name, square in zip(objective.names, squares, strict=True):
        group = _group(objective, name)
        given = stated[group]
        sigma[name] = float(given or max(np.sqrt(square), _LEAST_SCALE))
    weights = [counts[name] / (2 * sigma[name] ** 2) for name in objective.names]
    return objective.weighted(jnp.asarray(np.array(weights), np.dtype(kind))), sigma


def log_posterior(given: tuple[Objective, Model], x: jax.Array) -> jax.Array:
    """The log of prior times likelihood, up to a constant."""
    objective, model = given
    total, _ = objective(rebuild(model, x))
    return -total - 0.5 * jnp.sum(x**2)


def entries(objective: Objective) -> dict[str, int]:
    """How many numbers each term is the mean square of."""
    counts = {}
    if objective.data is not None:
        counts["data"] = int(np.count_nonzero(np.asarray(objective.data.weights)))
    terms = [] if objective.equations is None else [objective.equations]
    for term in (*terms, *objective.conditions):
        for name, expression in zip(term.names, term.expressions, strict=True):
            counts[name] = term.points.shape[0] * expression.components
    return counts


def _settings(task: Task) -> tuple[Sampler, dict[str, float | None], str]:
    sampler = Sampler(
        nuts=checks.flag(task, "bpinn", "nuts"),
        steps=_steps(task),
        doublings=checks.whole(task, "bpinn", "doublings", 1),
        burn_in=checks.whole(task, "bpinn", "burn_in", 1),
        samples=checks.whole(task, "bpinn", "samples", 1),
        target=checks.share(task, "bpinn", "target"),
    )
    stated = {
        group: checks.optional_positive(task, "bpinn", f"sigma_{group}")
        for group in ("data", "equations", "conditions")
    }
    kind = checks.choice(task, "bpinn", "precision", ("float32", "float64"))
    return sampler, stated, kind


def _steps(task: Task) -> int:
    if task.options["steps"] is not None:
        return checks.whole(task, "bpinn", "steps", 1)
    return usual_steps(task.protocol)


def usual_steps(protocol: Protocol) -> int:
    """Leapfrog steps of a trajectory: as many as a seventh of the baseline's epochs pays for."""
    # An epoch on the readings alone costs about a third of a gradient of everything.
    return 10 if tuple(protocol.stages[0].groups) == ("data",) else 30


def _group(objective: Objective, name: str) -> str:
    if name == "data":
        return "data"
    equations = () if objective.equations is None else objective.equations.names
    return "equations" if name in equations else "conditions"


@eqx.filter_jit
def _terms(objective: Objective, model: Model) -> jax.Array:
    return objective(model)[1]


def _digest(task: Task, baseline: Fit, sampler: Sampler, sigma: dict, kind: str) -> str:
    weights = hashlib.sha256()
    for leaf in jax.tree_util.tree_leaves(baseline.model):
        weights.update(np.asarray(leaf).tobytes())
    content: list[Any] = [
        task.problem.fingerprint, task.observations.fingerprint, task.seed, vars(sampler),
        {name: value.hex() for name, value in sigma.items()}, kind, weights.hexdigest(),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(plain(content), sort_keys=True).encode()).hexdigest()[:16]


def _told(fit: Fit, chain: Chain, sampler: Sampler, sigma: dict[str, float]) -> dict[str, Any]:
    """What a reader needs to judge the chain."""
    step, steps = float(chain.step_size), chain.column("steps", sampler)
    told: dict[str, Any] = {
        "sampler": "nuts" if sampler.nuts else "hmc",
        "burn_in": sampler.burn_in,
        "samples": sampler.samples,
        "prior_sigma": 1.0,
        "likelihood_sigma": sigma,
        "step_size": step,
        "leapfrog_steps": float(steps.mean()),
        "trajectory_length": float(step * steps.mean()),
        "acceptance": float(np.nan_to_num(chain.column("acceptance", sampler)).mean()),
        "divergences": int(chain.column("divergent", sampler).sum()),
        "gradients": int(sum(info[2] for info in chain.infos)),
    }
    if sampler.samples >= 4:
        told["effective_sample_size"] = _effective(fit, chain, sampler)
    return told


def _effective(fit: Fit, chain: Chain, sampler: Sampler) -> dict[str, float]:
    """Effective sample sizes of the density, the unknowns, and the fields at the readings."""
    assert fit.observations is not None
    points = fit.observations.points
    points = points[:: max(1, len(points) // 200)]
    draws = {"log_density": chain.column("log_density", sampler), **fit.unknown_samples}
    draws |= {f"{name} (median)": fit.predict_samples(points, name) for name in fit.problem.columns}
    with precision.scope("float64"):
        return {
            name: float(np.median(effective_sample_size(values.astype(np.float64))))
            for name, values in draws.items()
        }


BAYESIAN = register(
    Method(
        "bpinn",
        "Hamiltonian Monte Carlo on all weights and unknowns, started at the plain network",
        _run,
        options={
            "nuts": False,
            "steps": None,
            "doublings": 5,
            "burn_in": 20,
            "samples": 50,
            "target": 0.8,
            "sigma_data": None,
            "sigma_equations": None,
            "sigma_conditions": None,
            "precision": "float32",
        },
        needs_baseline=True,
    )
)
