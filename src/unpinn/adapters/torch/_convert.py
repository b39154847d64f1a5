"""MLPs on their way between this package and PyTorch, with predictions equal to rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from unpinn import precision
from unpinn._errors import UserError
from unpinn.adapters._weights import mlp_of
from unpinn.adapters.torch._checks import check_module
from unpinn.adapters.torch._masks import mask_of
from unpinn.adapters.torch._probe import call, linear_layers, run
from unpinn.network import MLP, Layout, Model
from unpinn.problem import Observations, Problem
from unpinn.training import Adam, Fit, History, Protocol, Status


class Sine(torch.nn.Module):
    """The sine as an activation."""

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Elementwise."""
        return torch.sin(z)


class Affine(torch.nn.Module):
    """A change of units that is not trained: each column plus a shift, times a factor."""

    factor: torch.Tensor
    shift: torch.Tensor

    def __init__(self, factor: Any, shift: Any):
        super().__init__()
        self.register_buffer("factor", torch.as_tensor(np.asarray(factor)))
        self.register_buffer("shift", torch.as_tensor(np.asarray(shift)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shift within, then scale: no digits are lost where a coordinate is far from zero."""
        return (x + self.shift) * self.factor


ACTIVATIONS: dict[str, Callable[[], torch.nn.Module]] = {
    "tanh": torch.nn.Tanh,
    "sin": Sine,
    "swish": torch.nn.SiLU,
    "gelu": lambda: torch.nn.GELU(approximate="tanh"),
    "softplus": torch.nn.Softplus,
}


def to_torch(source: Any) -> torch.nn.Sequential:
    """A PyTorch module that predicts what an MLP, a model or a fit of this package does.

    Arguments:
        source: an `unpinn.network.MLP`, or a model or fit that has one; of these the units of
            coordinates and fields are taken along, so that the module works in the user's own.

    >>> import jax
    >>> to_torch(MLP.make(jax.random.key(0), inputs=2, outputs=1, width=8, depth=1))
    Sequential(
      (0): Linear(in_features=2, out_features=8, bias=True)
      (1): Tanh()
      (2): Linear(in_features=8, out_features=1, bias=True)
    )
    """
    model = source.model if isinstance(source, Fit) else source
    network = model.network if isinstance(model, Model) else model
    if not isinstance(network, MLP):
        raise UserError(f"only an MLP can go to PyTorch, not {type(network).__name__}")
    with precision.scope(precision.of(network)):
        plain = network.compact()
    parts: list[torch.nn.Module] = []
    for layer in plain.hidden:
        parts += [_linear(layer), ACTIVATIONS[plain.activation]()]
    parts.append(_linear(plain.output))
    if isinstance(model, Model):
        parts = _in_units(parts, model.layout, np.dtype(precision.of(network)))
    return torch.nn.Sequential(*parts)


def from_torch(module: torch.nn.Module) -> MLP:
    """This package's MLP from a PyTorch module that is one, however its `forward` is written.

    The order of the linear layers and the activation between them are found by running it; masked
    neurons are left out, and changes of units that `to_torch` put around it go into the weights.
    """
    check_module(module)
    layers = list(module.children()) if isinstance(module, torch.nn.Sequential) else []
    first = layers[0] if layers and isinstance(layers[0], Affine) else None
    last = layers[-1] if layers and isinstance(layers[-1], Affine) else None
    names, activation = _chain(module)
    linears = linear_layers(module)
    pairs = [(_array(linears[n].weight), _bias(linears[n])) for n in names]
    pairs = _without_dead(pairs, [mask_of(linears[n]) for n in names])
    kind = _array(next(module.parameters())).dtype
    folded = _folded(pairs, first, last)
    mlp = mlp_of([(w.astype(kind), b.astype(kind)) for w, b in folded], activation)
    _check_equal(mlp, module, pairs[0][0].shape[1])
    return mlp


def to_fit(
    module: torch.nn.Module,
    problem: Problem,
    observations: Observations | None = None,
    unknowns: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Fit:
    """A fit of this package from an MLP that was trained in PyTorch, ready for `unpinn.unlearn`.

    Arguments:
        module: from the problem's coordinates to its columns, in the user's units.
        problem: what it was trained for.
        observations: on which readings.
        unknowns: the unknown numbers it was trained with; their initial values unless told.
        seed: the record's.
    """
    network = from_torch(module)
    kind = precision.of(network)
    dimension, columns = network.hidden[0].weight.shape[1], network.output.weight.shape[0]
    if (dimension, columns) != (problem.dimension, len(problem.columns)):
        raise UserError(
            f"the module takes {dimension} coordinates and gives {columns} columns, but the "
            f"problem has {problem.dimension} and {len(problem.columns)}"
        )
    values = {s.name: s.initial for s in problem.scalars} | dict(unknowns or {})
    with precision.scope(kind):
        scalars = {
            s.name: jnp.asarray(_raw(s, values[s.name]), np.dtype(kind)) for s in problem.scalars
        }
    n, m = problem.dimension, len(problem.columns)
    layout = Layout(
        tuple(problem.coordinates), problem.columns, (0.0,) * n, (1.0,) * n, (0.0,) * m,
        (1.0,) * m, tuple(name in problem.space for name in problem.coordinates), False,
    )  # fmt: skip
    model = Model(network, scalars, {}, layout, problem.scalars)
    protocol = Protocol((Adam(epochs=0, precision=kind),), scaled=False, name="torch")
    return Fit(
        problem, observations, model, protocol, seed, History.empty(("total",)),
        Status("finished", "trained in PyTorch"), {}, "pinn", "torch",
    )  # fmt: skip


def _raw(scalar, value: float) -> float:
    """The trained number whose natural value this is."""
    import dataclasses

    return dataclasses.replace(scalar, initial=float(value)).raw(scaled=False)


def _chain(module: torch.nn.Module) -> tuple[list[str], str]:
    """The linear layers in order, and what stands between them."""
    linears = linear_layers(module)
    if len(linears) < 2:
        raise UserError("the module has no hidden linear layer, so it is no MLP")
    seen = _seen(module, linears)
    names = list(seen)
    if any(len(calls) > 1 for calls in seen.values()) or len(names) != len(linears):
        raise UserError("the module does not use each linear layer once, so it is no plain MLP")
    for name, make in ACTIVATIONS.items():
        if all(_feeds(linears[a], linears[b], seen, a, b, make()) for a, b in pairwise(names)):
            return names, name
    raise UserError(
        "the module is no plain MLP with one of the activations "
        f"{', '.join(ACTIVATIONS)} between its linear layers"
    )


def _seen(module: torch.nn.Module, linears: Mapping[str, torch.nn.Linear]):
    """What each linear layer gets at some points; any of them may be the first."""
    for inputs in dict.fromkeys(layer.in_features for layer in linears.values()):
        try:
            return run(module, _points(module, 64, inputs, 0), call).inputs
        except RuntimeError:  # shapes that do not fit
            continue
    raise UserError("the module cannot be evaluated at points alone, so it is no plain MLP")


def _points(module: torch.nn.Module, count: int, inputs: int, seed: int) -> torch.Tensor:
    """Points of order one in the module's precision, where the module is."""
    drawn = torch.randn(count, inputs, generator=torch.Generator().manual_seed(seed))
    parameter = next(module.parameters())
    return drawn.to(parameter.device, parameter.dtype)


def _feeds(layer, following, seen, name: str, other: str, activation) -> bool:
    """Whether one layer's output through an activation is what the next one gets."""
    with torch.no_grad():
        expected = activation(torch.nn.functional.linear(seen[name][0], layer.weight, layer.bias))
    got = seen[other][0]
    if expected.shape != got.shape:
        return False
    alive = torch.as_tensor(mask_of(following), device=got.device)
    tolerance = 100 * torch.finfo(got.dtype).eps * (1 + float(expected.abs().max()))
    return bool((expected - got)[:, alive].abs().max() <= tolerance)


def _without_dead(pairs, masks):
    """Without neurons that the next layer does not read."""
    pairs = list(pairs)
    for number in range(len(pairs) - 1):
        (weight, bias), (after, after_bias) = pairs[number], pairs[number + 1]
        keep = masks[number + 1]
        pairs[number] = (weight[keep], bias[keep])
        pairs[number + 1] = (after[:, keep], after_bias)
    return pairs


def _folded(pairs, first: Affine | None, last: Affine | None):
    """Changes of units before and after as part of the weights."""
    pairs = [(w.astype(np.float64), b.astype(np.float64)) for w, b in pairs]
    if first is not None:
        weight, bias = pairs[0]
        factor, shift = (_array(t).astype(np.float64) for t in (first.factor, first.shift))
        pairs[0] = (weight * factor, bias + weight @ (factor * shift))
    if last is not None:
        weight, bias = pairs[-1]
        factor, shift = (_array(t).astype(np.float64) for t in (last.factor, last.shift))
        pairs[-1] = (factor[:, None] * weight, factor * (bias + shift))
    return pairs


def _check_equal(mlp: MLP, module: torch.nn.Module, inputs: int) -> None:
    points = _points(module, 16, inputs, 1)
    expected = run(module, points, call).output.cpu().numpy()
    with precision.scope(precision.of(mlp)):
        found = np.asarray(mlp(jnp.asarray(points.cpu().numpy())))
    allowed = float(np.sqrt(np.finfo(expected.dtype).eps)) * (1 + np.abs(expected).max())
    if found.shape != expected.shape or np.abs(found - expected).max() > allowed:
        raise UserError(
            "the module does more than its linear layers and activations, so it is no plain MLP"
        )


def _in_units(parts: list[torch.nn.Module], layout: Layout, kind: np.dtype):
    centre, half = np.array(layout.centre, kind), np.array(layout.half, kind)
    scale, offset = np.array(layout.scale, kind), np.array(layout.offset, kind)
    if centre.any() or (half != 1).any():
        parts = [Affine(1 / half, -centre), *parts]
    if offset.any() or (scale != 1).any():
        parts = [*parts, Affine(scale, offset / scale)]
    return parts


def _linear(layer) -> torch.nn.Linear:
    weight, bias = (torch.as_tensor(np.array(a)) for a in (layer.weight, layer.bias))
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    return linear


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def _bias(linear: torch.nn.Linear) -> np.ndarray:
    if linear.bias is None:
        return np.zeros(linear.out_features, _array(linear.weight).dtype)
    return _array(linear.bias)
