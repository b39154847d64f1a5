r"""Part II of Algorithm 1: how much of a neuron belongs to the suspect readings.

A criterion maps what a layer does on the readings to one number a neuron; the largest are removed
first. All but `magnitude` see activations after the nonlinearity, (N, neurons).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unpinn._errors import UserError


@dataclass(frozen=True, eq=False)
class LayerView:
    """What a criterion may look at.

    Arguments:
        activations: on all readings, (N, neurons).
        retained: which readings are retained, (N,) of bool.
        incoming: norm of each neuron's incoming weights.
        outgoing: norm of its outgoing weights.
        epsilon: the regularisation of variances.
        seed: for the random control.
        weight: how much each reading counts, (N,).
    """

    activations: np.ndarray
    retained: np.ndarray
    incoming: np.ndarray
    outgoing: np.ndarray
    epsilon: float = 1e-8
    seed: int = 0
    weight: np.ndarray | None = None


Criterion = Callable[[LayerView], np.ndarray]


def bias(view: LayerView) -> np.ndarray:
    r"""The paper's: $v^2/(\sigma^2+\epsilon)$, $v$ the suspect minus the retained mean."""
    shift = _shift(view)
    return shift**2 / (view.activations.var(axis=0) + view.epsilon)


def directed_bias(view: LayerView) -> np.ndarray:
    """The released code's variant: suspect minus retained mean, the most positive first."""
    return _shift(view)


def mean_absolute(view: LayerView) -> np.ndarray:
    """Mean absolute activation."""
    return np.abs(view.activations).mean(axis=0)


def root_mean_square(view: LayerView) -> np.ndarray:
    """Root mean square activation."""
    return np.sqrt((view.activations**2).mean(axis=0))


def frequency(view: LayerView) -> np.ndarray:
    """How often the activation is above zero."""
    return (view.activations > 0).mean(axis=0)


def deviation(view: LayerView) -> np.ndarray:
    """Standard deviation of the activation."""
    return view.activations.std(axis=0)


def magnitude(view: LayerView) -> np.ndarray:
    """Control: the smallest weights first, as classical pruning does."""
    return -view.incoming * view.outgoing


def least_useful(view: LayerView) -> np.ndarray:
    """The least signal handed on: spread over the retained readings times outgoing weights."""
    return -view.activations[view.retained].std(axis=0) * view.outgoing


def random(view: LayerView) -> np.ndarray:
    """Control: chance."""
    return np.random.default_rng(view.seed).random((view.activations.shape[1],))


def _shift(view: LayerView) -> np.ndarray:
    if view.retained.all() or not view.retained.any():
        return np.zeros(view.activations.shape[1])
    forget = view.activations[~view.retained].mean(axis=0)
    return forget - view.activations[view.retained].mean(axis=0)


CRITERIA: dict[str, Criterion] = {
    "bias": bias,
    "directed": directed_bias,
    "abs": mean_absolute,
    "rms": root_mean_square,
    "freq": frequency,
    "std": deviation,
    "magnitude": magnitude,
    "useless": least_useful,
    "random": random,
}


def criterion(name: str | Criterion) -> Criterion:
    """A criterion by name, or a function of one's own.

    >>> criterion("rms") is root_mean_square
    True
    """
    if callable(name):
        return name
    if name not in CRITERIA:
        close = difflib.get_close_matches(name, CRITERIA, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UserError(f"criterion {name!r} is not known ({', '.join(CRITERIA)}){hint}")
    return CRITERIA[name]
