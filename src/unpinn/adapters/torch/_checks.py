"""What a user can get wrong about a module, each in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from unpinn._errors import UserError
from unpinn.adapters.torch._structure import HiddenLayer


def check_module(module: Any) -> None:
    """A PyTorch module whose numbers are all in one place."""
    if not isinstance(module, torch.nn.Module):
        raise UserError(f"unlearn needs a torch.nn.Module, not {type(module).__name__}")
    devices = {str(p.device) for p in module.parameters()}
    if not devices:
        raise UserError("the module has no parameters, so there is nothing to unlearn")
    if "meta" in devices:
        raise UserError(
            "the module's parameters are on the device 'meta', which holds no numbers; load the "
            "trained weights onto a real device first"
        )
    if len(devices) > 1:
        raise UserError(
            f"the module's parameters are on several devices ({', '.join(sorted(devices))}); move "
            "it to one with module.to(...)"
        )


def check_unknowns(unknowns: dict[str, Any], module: torch.nn.Module) -> None:
    """Numbers that can be trained, where the module is."""
    place = next(module.parameters()).device
    for name, tensor in unknowns.items():
        if not isinstance(tensor, torch.Tensor) or tensor.numel() != 1:
            raise UserError(f"the unknown {name!r} must be a tensor of one number")
        if not tensor.requires_grad or not tensor.is_leaf:
            raise UserError(
                f"the unknown {name!r} is not trained; make it a torch.nn.Parameter, or leave it "
                "out of unknowns"
            )
        if tensor.device != place:
            raise UserError(
                f"the unknown {name!r} is on {tensor.device}, but the module is on {place}; move "
                "one to the other"
            )


def check_trainable(module: torch.nn.Module) -> None:
    """A module of which at least something can be fine-tuned."""
    if not any(p.requires_grad for p in module.parameters()):
        raise UserError(
            "all parameters of the module are frozen, so it cannot be fine-tuned; call "
            "module.requires_grad_() first"
        )


def check_hidden(module: torch.nn.Module, layers: Sequence[HiddenLayer]) -> None:
    """Layers that can still learn what pruning takes from them."""
    for layer in layers:
        for part in (*layer.writes, *layer.reads):
            linear = module.get_submodule(part.layer)
            if not all(p.requires_grad for p in linear.parameters()):
                raise UserError(
                    f"the layer {part.layer!r} is frozen, so it cannot be fine-tuned after "
                    "pruning; call requires_grad_() on it, or name other layers in layers="
                )


def residual_columns(given: Any, count: int) -> torch.Tensor:
    """A residual's values as (points, components), whatever of the usual shapes they came in."""
    parts = list(given) if isinstance(given, (list, tuple)) else [given]
    columns = []
    for number, part in enumerate(parts):
        if not isinstance(part, torch.Tensor):
            raise UserError(f"the residual must give tensors, not {type(part).__name__}")
        shape = tuple(part.shape)
        wide = part[:, None] if part.ndim == 1 else part
        square = wide.ndim == 2 and count > 1 and wide.shape[1] == count
        if wide.ndim != 2 or len(wide) != count or square or wide.shape[1] == 0:
            which = f"equation {number + 1} of the residual" if len(parts) > 1 else "the residual"
            raise UserError(
                f"{which} has the shape {shape} at {count} points; it must be ({count},) or "
                f"({count}, components), so slice columns as in points[:, 0:1], not points[:, 0]"
            )
        columns.append(wide)
    if not columns:
        raise UserError("the residual gave no equation")
    return torch.cat(columns, dim=1)


def in_sizes(columns: torch.Tensor, sizes: tuple[float, ...]) -> torch.Tensor:
    """A residual's components, each divided by its equation's size."""
    if len(sizes) not in (1, columns.shape[1]):
        raise UserError(
            f"there are {len(sizes)} sizes, but the residual has {columns.shape[1]} components"
        )
    return columns / torch.as_tensor(sizes, dtype=columns.dtype, device=columns.device)


def equation_sizes(sizes: Any) -> tuple[float, ...]:
    """One size for all components of the residual, or one each."""
    found = tuple(float(size) for size in np.atleast_1d(np.asarray(sizes, np.float64)))
    if not all(np.isfinite(size) and size > 0 for size in found):
        raise UserError(f"the equations' sizes must be finite and above zero, not {sizes}")
    return found


def as_tensor(array: Any, module: torch.nn.Module) -> torch.Tensor:
    """An array in the module's precision, where the module is."""
    parameter = next(module.parameters())
    return torch.as_tensor(np.asarray(array), dtype=parameter.dtype, device=parameter.device)


def as_matrix(array: Any, what: str) -> np.ndarray:
    """Numbers with two axes, as float64 on the host."""
    if isinstance(array, torch.Tensor):
        if array.device.type == "meta":
            raise UserError(f"the {what} are on the device 'meta', which holds no numbers")
        array = array.detach().cpu().numpy()
    try:
        matrix = np.array(array, np.float64)
    except (TypeError, ValueError):
        raise UserError(f"the {what} must be numbers") from None
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or len(matrix) == 0 or matrix.shape[1] == 0:
        raise UserError(f"the {what} must have two axes and some rows, not shape {matrix.shape}")
    return matrix


def check_readings(points: np.ndarray, values: np.ndarray) -> None:
    """As many values as points, and something read at each."""
    if len(points) != len(values):
        raise UserError(f"there are {len(points)} points but {len(values)} values")
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise UserError(f"the points have a coordinate that is not finite in row {row}")
    empty = ~np.isfinite(values).any(axis=1) | np.isinf(values).any(axis=1)
    if empty.any():
        row = int(np.flatnonzero(empty)[0])
        raise UserError(f"row {row} of the values reads nothing or infinity; drop it")
