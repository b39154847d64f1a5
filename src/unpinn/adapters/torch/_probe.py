"""Looking into a module while it runs: what its linear layers take and give.

Only hooks are used, so any module will do, whatever its `forward` looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch

from unpinn._errors import UserError

Forward = Callable[[torch.nn.Module, torch.Tensor], torch.Tensor]
Replace = Callable[[str, int, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Run:
    """One pass: every linear layer's inputs, one a call, in the order of first calls.

    Arguments:
        inputs: by the layer's name, a list of tensors (rows, features).
        output: the module's.
    """

    inputs: dict[str, list[torch.Tensor]]
    output: torch.Tensor


def call(module: torch.nn.Module, points: torch.Tensor) -> torch.Tensor:
    """The plain way to evaluate a module."""
    return module(points)


def linear_layers(module: torch.nn.Module) -> dict[str, torch.nn.Linear]:
    """Every linear layer by name."""
    return {n: m for n, m in module.named_modules() if isinstance(m, torch.nn.Linear)}


def run(
    module: torch.nn.Module, points: torch.Tensor, forward: Forward, replace: Replace | None = None
) -> Run:
    """Evaluate a module and look at its linear layers.

    Arguments:
        module: whose layers.
        points: (n, dimensions).
        forward: how the module is evaluated.
        replace: from a layer's name, the number of the call and its output, another output.
    """
    inputs: dict[str, list[torch.Tensor]] = {}
    handles = []
    for name, layer in linear_layers(module).items():
        handles.append(layer.register_forward_pre_hook(partial(_look, inputs, name)))
        if replace is not None:
            handles.append(layer.register_forward_hook(partial(_exchange, inputs, name, replace)))
    try:
        with evaluating(module):
            output = evaluate(module, points, forward)
    finally:
        for handle in handles:
            handle.remove()
    return Run(inputs, output)


def evaluate(module: torch.nn.Module, points: torch.Tensor, forward: Forward) -> torch.Tensor:
    """The module's output (n, outputs), checked; a `forward` may differentiate inside."""
    with torch.enable_grad():
        output = forward(module, points.detach().clone().requires_grad_(True))
    if not isinstance(output, torch.Tensor) or output.ndim != 2 or len(output) != len(points):
        told = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        raise UserError(
            f"the module must give a tensor ({len(points)}, outputs) at {len(points)} points, not "
            f"{told}; pass forward=lambda module, points: ... that does"
        )
    return output.detach()


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """In evaluation mode (no dropout), and back to how it was."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def _look(inputs: dict[str, list[torch.Tensor]], name: str, layer, arguments) -> None:
    seen = arguments[0].detach()
    inputs.setdefault(name, []).append(seen.reshape(-1, seen.shape[-1]))


def _exchange(inputs, name: str, replace: Replace, layer, arguments, output):
    other = replace(name, len(inputs[name]) - 1, output)
    # Zero times the true output keeps the graph whole for a `forward` that differentiates.
    return other + 0.0 * output
