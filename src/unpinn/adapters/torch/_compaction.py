"""From masked neurons to a smaller module of the same class, checked against the masked one.

A plain layer is cut by hand: rows of the layer that writes, columns of those that read. Coupled
layers, and neurons that have numbers of their own elsewhere (a batch norm, say), go through
Torch-Pruning's dependency graph where it is installed. Where neither works, the masks stay.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass

import numpy as np
import torch

from unpinn.adapters.torch._masks import clear_mask, mask_of, set_mask
from unpinn.adapters.torch._probe import Forward, evaluate, evaluating
from unpinn.adapters.torch._prunable import TorchPrunable
from unpinn.adapters.torch._structure import HiddenLayer, Part


@dataclass(frozen=True, eq=False)
class Compacted:
    """A module, and what became of its dead neurons in one sentence."""

    module: torch.nn.Module
    told: str


def compacted(pruned: TorchPrunable) -> Compacted:
    """The module without its masked neurons, as far as that is possible."""
    module, layers = pruned.module, pruned.layers
    plain = [layer for layer in layers if not layer.coupled and _can_cut(module, layer)]
    rest = [layer for layer in layers if layer not in plain]
    said = []
    if plain:
        smaller = _cut(module, plain)
        if _same(smaller, pruned):
            module = smaller
            said.append(f"compacted {_names(plain)}")
        else:
            rest = list(layers)
    if rest:
        module, sentence = _by_graph(module, rest, pruned)
        said.append(sentence)
    return Compacted(module, "; ".join(said))


def _names(layers: list[HiddenLayer]) -> str:
    return ", ".join(layer.name for layer in layers)


def _alive(module: torch.nn.Module, layer: HiddenLayer) -> np.ndarray:
    part = layer.reads[0]
    return mask_of(_linear(module, part))[part.places]


def _linear(module: torch.nn.Module, part: Part) -> torch.nn.Linear:
    return module.get_submodule(part.layer)  # type: ignore[return-value]


def _can_cut(module: torch.nn.Module, layer: HiddenLayer) -> bool:
    """Whether the weights are plain parameters, not made from others."""
    linears = [_linear(module, part) for part in (*layer.writes, *layer.reads)]
    return all("weight" in linear._parameters for linear in linears)


def _cut(module: torch.nn.Module, layers: list[HiddenLayer]) -> torch.nn.Module:
    """A copy without the dead rows and columns."""
    smaller = copy.deepcopy(module)
    rows: dict[str, np.ndarray] = {}
    columns: dict[str, np.ndarray] = {}
    for layer in layers:
        dead = ~_alive(module, layer)
        for table, parts in ((rows, layer.writes), (columns, layer.reads)):
            for part in parts:
                places = part.places[dead]
                table[part.layer] = np.concatenate([table.get(part.layer, places[:0]), places])
    for name in {*rows, *columns}:
        linear: torch.nn.Linear = smaller.get_submodule(name)  # type: ignore[assignment]
        _shrink(
            linear,
            np.setdiff1d(np.arange(linear.out_features), rows.get(name, [])),
            np.setdiff1d(np.arange(linear.in_features), columns.get(name, [])),
        )
    return smaller


def _shrink(linear: torch.nn.Linear, rows: np.ndarray, columns: np.ndarray) -> None:
    """Keep some rows and columns of a linear layer."""
    mask = mask_of(linear)[columns]
    place = linear.weight.device
    keep, take = (torch.as_tensor(index, device=place) for index in (rows, columns))
    linear.weight = _smaller(linear.weight, linear.weight.detach()[keep][:, take])
    if linear.bias is not None:
        linear.bias = _smaller(linear.bias, linear.bias.detach()[keep])
    linear.out_features, linear.in_features = len(rows), len(columns)
    set_mask(linear, mask)


def _smaller(old: torch.Tensor, values: torch.Tensor) -> torch.nn.Parameter:
    return torch.nn.Parameter(values.clone(), requires_grad=old.requires_grad)


def _by_graph(
    module: torch.nn.Module, layers: list[HiddenLayer], pruned: TorchPrunable
) -> tuple[torch.nn.Module, str]:
    """Remove dead neurons through Torch-Pruning's dependency graph, or say why not."""
    kept = f"masks only for {_names(layers)}"
    try:
        import torch_pruning
    except ImportError:
        return module, f"{kept}: coupled layers need torch-pruning (the extra unpinn[prune])"
    smaller = copy.deepcopy(module)
    for layer in layers:
        for part in layer.reads:
            clear_mask(_linear(smaller, part))
    try:
        with warnings.catch_warnings(), evaluating(smaller):
            warnings.simplefilter("ignore")
            _prune_graph(torch_pruning, smaller, module, layers, pruned.points, pruned.forward)
        same = _same(smaller, pruned)
    except Exception as error:  # a foreign tracer on a foreign module fails in ways of its own
        return module, f"{kept}: torch-pruning could not take them out ({type(error).__name__})"
    if not same:
        return module, f"{kept}: without them torch-pruning gave another function"
    return smaller, f"compacted {_names(layers)} through torch-pruning"


def _prune_graph(
    library, smaller: torch.nn.Module, masked: torch.nn.Module, layers: list[HiddenLayer],
    points: torch.Tensor, forward: Forward,
) -> None:  # fmt: skip
    graph = library.DependencyGraph().build_dependency(
        smaller,
        example_inputs=points[:2].detach().clone().requires_grad_(True),
        forward_fn=lambda model, inputs: forward(model, inputs),
    )
    for layer in layers:
        part = layer.writes[0]
        places = part.places[~_alive(masked, layer)].tolist()
        if places:
            group = graph.get_pruning_group(
                smaller.get_submodule(part.layer), library.prune_linear_out_channels, idxs=places
            )
            group.prune()


def _same(smaller: torch.nn.Module, pruned: TorchPrunable) -> bool:
    """Whether a smaller module gives what the masked one gives, to rounding."""
    with evaluating(pruned.module):
        expected = evaluate(pruned.module, pruned.points, pruned.forward)
    try:
        with evaluating(smaller):
            found = evaluate(smaller, pruned.points, pruned.forward)
    except RuntimeError:  # shapes that no longer fit
        return False
    allowed = torch.finfo(expected.dtype).eps ** 0.5 * (1.0 + expected.abs().max())
    return bool((found - expected).abs().max() <= allowed)
