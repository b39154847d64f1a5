"""Masks on what a linear layer reads: training cannot bring a removed neuron back.

The mask is a buffer of the layer that reads, multiplied into its input by a hook, so no gradient
and no weight decay reaches past it. It is not part of the state dictionary, whose names stay what
they were; the masked columns are set to zero besides, so a saved state is right without the mask.
"""

from __future__ import annotations

import numpy as np
import torch

_MASK = "neuron_mask"


def mask_of(layer: torch.nn.Linear) -> np.ndarray:
    """Which inputs a layer still reads, (in,) of bool."""
    mask = getattr(layer, _MASK, None)
    if mask is None:
        return np.ones(layer.in_features, bool)
    return mask.cpu().numpy() > 0


def silence(layer: torch.nn.Linear, columns: np.ndarray, constants: np.ndarray) -> None:
    """Stop reading some inputs, and take their constants into the bias instead.

    Arguments:
        layer: the layer that reads.
        columns: the inputs.
        constants: what stands for each of them.
    """
    alive = mask_of(layer)
    weight = layer.weight
    with torch.no_grad():
        if np.any(constants):
            # A product with the rows, as this package's own networks fold.
            handed = torch.zeros(layer.in_features, dtype=weight.dtype, device=weight.device)
            handed[columns] = torch.as_tensor(constants, dtype=weight.dtype, device=weight.device)
            extra = weight @ handed
            if layer.bias is None:
                layer.bias = torch.nn.Parameter(extra)
            else:
                layer.bias.add_(extra)
        if "weight" in layer._parameters:
            weight[:, columns] = 0.0
    alive[columns] = False
    set_mask(layer, alive)


def set_mask(layer: torch.nn.Linear, alive: np.ndarray) -> None:
    """Give a layer a mask over its inputs, or none where everything is alive."""
    clear_mask(layer)
    if alive.all():
        return
    mask = torch.as_tensor(alive, dtype=layer.weight.dtype, device=layer.weight.device)
    layer.register_buffer(_MASK, mask, persistent=False)
    layer.register_forward_pre_hook(_multiply)


def clear_mask(layer: torch.nn.Linear) -> None:
    """Take the mask away; masked columns stay at zero."""
    layer._buffers.pop(_MASK, None)
    layer._non_persistent_buffers_set.discard(_MASK)
    for key in [k for k, hook in layer._forward_pre_hooks.items() if hook is _multiply]:
        del layer._forward_pre_hooks[key]


def _multiply(layer: torch.nn.Module, arguments):
    return (arguments[0] * getattr(layer, _MASK), *arguments[1:])
