"""Fields for pictures in sixteen bits a value, as fine as a 65,000th of their range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_LEVELS = np.iinfo(np.uint16).max


def shortened(
    arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays as whole numbers, and their description with what turns them back.

    A field with a value that is not finite cannot be drawn, and is left out.

    >>> whole, about = shortened({"u": np.array([-1.0, 0.0, 1.0])}, {})
    >>> whole["u"].dtype, about["ranges"]
    (dtype('uint16'), {'u': [-1.0, 1.0]})
    """
    if "ranges" in about:
        return dict(arrays), dict(about)
    whole, ranges = {}, {}
    for name, array in arrays.items():
        values = np.asarray(array, np.float64)
        if not np.isfinite(values).all():
            continue
        low, high = float(values.min()), float(values.max())
        # Divided first: the inverse of a tiny range would be infinite.
        steps = (values - low) / ((high - low) or 1.0) * _LEVELS
        whole[name], ranges[name] = np.rint(steps).astype(np.uint16), [low, high]
    return whole, {**about, "ranges": ranges}


def restored(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Back from what `shortened` gave; arrays of numbers are left as they are.

    >>> values = restored(*shortened({"u": np.array([-1.0, 0.0, 1.0])}, {}))["u"]
    >>> bool(np.abs(values - [-1, 0, 1]).max() < 2e-5)
    True
    """
    ranges = about.get("ranges")
    if ranges is None:
        return dict(arrays)
    found = {}
    for name, array in arrays.items():
        low, high = map(float, ranges[name])
        found[name] = (low + array.astype(np.float64) * ((high - low) / _LEVELS)).astype(np.float32)
    return found
