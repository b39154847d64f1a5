"""Arrays inside a model that training must not touch."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np


class Fixed(eqx.Module):
    """An array that is part of a model but not trained: a mask, a scale, a frequency."""

    array: jax.Array | np.ndarray


def _is_fixed(node) -> bool:
    return isinstance(node, Fixed)


def trainable(tree):
    """A tree of booleans: what an optimiser may change (floating-point arrays not in `Fixed`)."""
    return jax.tree_util.tree_map(
        lambda node: not _is_fixed(node) and eqx.is_inexact_array(node), tree, is_leaf=_is_fixed
    )


def split(tree):
    """Separate what is trained from the rest; `equinox.combine` puts them together again."""
    return eqx.partition(tree, trainable(tree), is_leaf=_is_fixed)
