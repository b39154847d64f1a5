"""Working precision as a scope, so that no global flag of JAX is ever changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from unpinn._errors import UserError

Precision = Literal["float32", "float64"]


def check(name: str) -> Precision:
    """Return `name` if it is a precision that networks can be trained in.

    >>> check("float64")
    'float64'
    """
    if name not in get_args(Precision):
        raise UserError(f"precision {name!r} is not known; choose one of {get_args(Precision)}")
    return name  # type: ignore[return-value]


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Run the block with JAX's 64-bit types on for float64 and off for float32.

    With them off, a stray NumPy float64 in a user's residual cannot promote a float32
    computation; with them on, nothing is silently truncated. Products of matrices keep all their
    digits: accelerators would else round the factors of float32 ones to 10 bits, which derivatives
    do not survive.

    >>> with scope("float64"):
    ...     jnp.zeros(1).dtype == "float64"
    True
    """
    with jax.enable_x64(check(name) == "float64"), jax.default_matmul_precision("highest"):
        yield


def of(tree: object) -> Precision:
    """The precision of the floating-point arrays in `tree` (the widest of them)."""
    kinds = {
        leaf.dtype
        for leaf in jax.tree_util.tree_leaves(tree)
        if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
    }
    return "float64" if np.dtype("float64") in kinds else "float32"


def cast(tree, name: str):
    """A copy of `tree` with every floating-point array in the given precision.

    Must be called within the `scope` of the wider of the two precisions.
    """
    kind = np.dtype(check(name))

    def convert(leaf):
        if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.asarray(leaf, kind) if isinstance(leaf, jax.Array) else leaf.astype(kind)
        return leaf

    return jax.tree_util.tree_map(convert, tree)
