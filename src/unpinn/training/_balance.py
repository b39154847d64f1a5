r"""Weights set once from the gradients' norms, as the paper's authors do after pre-training.

$\lambda_j = N_j R / (T_j + 10^{-3})$ with $T_j$ the squared gradient norm of term j, $N_j$ its
number of points and $R = \sum_j T_j / N_j$; data and boundary weights are capped at 1000.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn.network import Model
from unpinn.training._objective import Objective
from unpinn.training._stages import flatten, loss

_CAP = 1000.0


@eqx.filter_jit
def _square_norm(objective: Objective, model: Model) -> jax.Array:
    gradient = jax.grad(lambda x: loss(x, objective, model)[0])(flatten(model))
    return jnp.sum(gradient**2)


def balanced_weights(objective: Objective, model: Model) -> np.ndarray:
    """A weight for each term of the objective."""
    count = len(objective.names)
    norms = np.array(
        [
            float(
                _square_norm(
                    objective.weighted(jnp.eye(count, dtype=objective.weights.dtype)[k]), model
                )
            )
            for k in range(count)
        ]
    )
    points = np.array(_points(objective), float)
    total = float(np.sum(norms / points))
    weights = points * total / (norms + 1e-3)
    equations = set() if objective.equations is None else set(objective.equations.names)
    capped = np.array([name not in equations for name in objective.names])
    return np.where(capped, np.minimum(weights, _CAP), weights)


def _points(objective: Objective) -> list[int]:
    counts = [] if objective.data is None else [objective.data.values.shape[0]]
    if objective.equations is not None:
        counts += [objective.equations.points.shape[0]] * len(objective.equations.names)
    for term in objective.conditions:
        counts += [term.points.shape[0]] * len(term.names)
    return counts
