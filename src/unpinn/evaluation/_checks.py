"""What every measure asks of its arrays before it computes anything."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from unpinn._errors import UserError

Numbers: TypeAlias = ArrayLike | Sequence[Any] | float | int
"""Anything that NumPy reads as an array of numbers.

`ArrayLike` alone, when checked as the program runs, knows neither tuples nor plain floats.
"""


def numbers(name: str, values: Numbers, *, allow_infinite: bool = False) -> np.ndarray:
    """`values` as a non-empty float64 array without a NaN, or a `UserError` that says `name`."""
    if np.ma.is_masked(values):
        raise UserError(f"{name} has masked entries; drop them (`.compressed()`) before measuring.")
    if np.iscomplexobj(values):
        raise UserError(f"{name} is complex; pass its real or imaginary part.")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as problem:
        reason = str(problem).rstrip(".")
        raise UserError(f"{name} cannot be read as an array of numbers: {reason}.") from None
    if array.size == 0:
        raise UserError(f"{name} is empty; pass at least one value.")
    wrong = np.isnan(array) if allow_infinite else ~np.isfinite(array)
    if wrong.any():
        kind = "NaN" if allow_infinite else "NaN or infinite"
        raise UserError(
            f"{name} has {int(wrong.sum())} of {array.size} values {kind}; "
            "report the run as diverged or drop them before measuring."
        )
    return array


def same_shape(**arrays: Numbers) -> tuple[np.ndarray, ...]:
    """Several arrays, each checked by `numbers`, that must agree in shape without broadcasting.

    Broadcasting is refused because `(n, 1) - (n,)` silently makes an `(n, n)` error.
    """
    checked = {name: numbers(name, values) for name, values in arrays.items()}
    first, *others = checked
    for name in others:
        if checked[name].shape != checked[first].shape:
            raise UserError(
                f"{name} has shape {checked[name].shape} but {first} has {checked[first].shape}; "
                "reshape one to match the other."
            )
    return tuple(checked.values())


def mask(name: str, values: Numbers, length: int) -> np.ndarray:
    """`values` as one boolean for each of `length` readings; 0 and 1 are taken for booleans."""
    array = np.asarray(values)
    if array.shape != (length,):
        raise UserError(
            f"{name} has shape {array.shape}; pass one boolean for each of the {length} readings."
        )
    if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
        raise UserError(f"{name} has values other than True and False; pass a boolean mask.")
    return array.astype(bool)


def fraction(name: str, value: float) -> float:
    """`value` strictly between 0 and 1, as a level or a confidence must be."""
    if not 0 < value < 1:
        raise UserError(f"{name} is {value}; choose it strictly between 0 and 1.")
    return float(value)


def grid(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """`shape` as a tuple of positive whole numbers."""
    sizes = tuple(shape)
    if not sizes or any(size != int(size) or size < 1 for size in sizes):
        raise UserError(f"{name} is {sizes}; give a positive whole number of points for each axis.")
    return tuple(int(size) for size in sizes)
