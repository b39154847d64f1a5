"""An MLP's weights in a safetensors file that both this package and PyTorch can open.

The names are those of `torch.nn.Sequential(Linear, Tanh, Linear, ...)`: "0.weight", "0.bias",
"2.weight" and so on; which activation stands between is in the file's description.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn._errors import UserError
from unpinn._files import read_arrays, write_arrays
from unpinn.network import MLP, Fixed, Linear
from unpinn.network import activation as activation_named

_KIND = "mlp"


def save_mlp(network: Any, path: Any) -> None:
    """Write an MLP, this package's or a PyTorch module that is one, without removed neurons.

    Arguments:
        network: an `unpinn.network.MLP` or a module that `unpinn.adapters.torch.from_torch` takes.
        path: the file.
    """
    if not isinstance(network, MLP) and hasattr(network, "named_modules"):
        from unpinn.adapters.torch import from_torch

        network = from_torch(network)
    if not isinstance(network, MLP):
        raise UserError(
            f"save_mlp writes an MLP or a PyTorch module, not {type(network).__name__}; "
            "a fit is written by its own save method"
        )
    with precision.scope(precision.of(network)):
        plain = network.compact()
    arrays = {}
    for number, layer in enumerate((*plain.hidden, plain.output)):
        arrays[f"{2 * number}.weight"] = np.asarray(layer.weight)
        arrays[f"{2 * number}.bias"] = np.asarray(layer.bias)
    write_arrays(Path(path), arrays, {"kind": _KIND, "activation": plain.activation})


def load_mlp(path: Any, activation: str | None = None) -> MLP:
    """Open an MLP from a safetensors file, also a PyTorch state dictionary of plain linear layers.

    Arguments:
        path: the file.
        activation: what stands between the layers, where the file does not say it.
    """
    arrays, about = read_arrays(Path(path))
    told = about.get("activation") if isinstance(about, dict) else None
    name = activation or told
    if name is None or not isinstance(name, str):
        raise UserError(f"{path} does not say its activation; pass one, as in activation='tanh'")
    if told is not None and activation not in (None, told):
        raise UserError(f"{path} holds a network with {told}, not with {activation}")
    return mlp_of(_pairs(arrays, str(path)), name)


def mlp_of(pairs: Sequence[tuple[np.ndarray, np.ndarray]], activation: str) -> MLP:
    """An MLP from its weights (out, in) and biases (out,), in their own precision."""
    activation_named(activation)
    kind = "float64" if any(w.dtype == np.float64 for w, _ in pairs) else "float32"
    with precision.scope(kind):
        layers = [
            Linear(jnp.asarray(w, np.dtype(kind)), jnp.asarray(b, np.dtype(kind))) for w, b in pairs
        ]
        masks = tuple(Fixed(jnp.ones(len(b), np.dtype(kind))) for _, b in pairs[:-1])
    return MLP(tuple(layers[:-1]), layers[-1], masks, activation)


def _pairs(arrays: Mapping[str, np.ndarray], path: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases in the order of their names' numbers, checked to be a chain."""
    layers: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        place, _, part = name.rpartition(".")
        if part not in ("weight", "bias") or array.ndim != (2 if part == "weight" else 1):
            raise UserError(f"{path} holds {name!r}, which is no part of a plain MLP")
        layers.setdefault(place, {})[part] = array
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for place in sorted(layers, key=_natural):
        weight = layers[place].get("weight")
        if weight is None:
            raise UserError(f"{path} has no '{place}.weight' to go with '{place}.bias'")
        bias = layers[place].get("bias", np.zeros(len(weight), weight.dtype))
        chained = not pairs or pairs[-1][0].shape[0] == weight.shape[1]
        if bias.shape != weight.shape[:1] or not chained:
            raise UserError(f"the layer {place!r} in {path} does not fit the one before it")
        pairs.append((weight, bias))
    if len(pairs) < 2:
        raise UserError(f"{path} has no hidden layer, so it holds no MLP")
    return pairs


def _natural(name: str) -> list[tuple[int, str]]:
    """Numbers in a name sort as numbers."""
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", name)]
