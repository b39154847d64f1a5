"""The same epochs in PyTorch, derivatives by nested automatic differentiation: the usual way."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import torch


def processors() -> int:
    """How many processors this process may use: what `taskset` left of them, where there is one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# As many threads as the other library takes: one a processor.
torch.set_num_threads(processors())


def tensor(array) -> torch.Tensor:
    return torch.tensor(np.asarray(array, np.float32))


def network(layers: list[tuple[np.ndarray, np.ndarray]]) -> torch.nn.Sequential:
    """A tanh network with given weights (out, in) and biases."""
    modules: list[torch.nn.Module] = []
    for weight, bias in layers:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        with torch.no_grad():
            linear.weight.copy_(tensor(weight))
            linear.bias.copy_(tensor(bias))
        modules += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*modules[:-1])


def gradient(values: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """The derivatives of values (n,) in the points' coordinates, differentiable again."""
    return torch.autograd.grad(values.sum(), points, create_graph=True)[0]


def pinv_loss(net, points: dict[str, torch.Tensor], values: dict[str, torch.Tensor]):
    """The mean squares of data, equation and the two boundary conditions of pinv."""
    inside = points["equations"].detach().requires_grad_()
    u, a = net(inside).unbind(dim=1)
    du, da = gradient(u, inside), gradient(a, inside)
    laplacian = gradient(du[:, 0], inside)[:, 0] + gradient(du[:, 1], inside)[:, 1]
    residual = -(a * laplacian + (da * du).sum(dim=1)) - values["forcing"]
    edge_u, edge_a = net(points["boundary"]).unbind(dim=1)
    misfit = net(points["data"])[:, 0] - values["data"]
    terms = (misfit, residual, edge_u, edge_a - values["boundary"])
    return sum((term**2).mean() for term in terms)


def beam_loss(net, alpha, points: dict[str, torch.Tensor], values: dict[str, torch.Tensor]):
    """The mean squares of data, equation, two boundary and two initial conditions of ebinv."""
    inside = points["equations"].detach().requires_grad_()
    first = gradient(net(inside)[:, 0], inside)
    second_x = gradient(first[:, 0], inside)[:, 0]
    u_tt = gradient(first[:, 1], inside)[:, 1]
    third = gradient(second_x, inside)[:, 0]
    residual = u_tt + alpha**2 * gradient(third, inside)[:, 0]
    ends = points["boundary"].detach().requires_grad_()
    u_ends = net(ends)[:, 0]
    bending = gradient(gradient(u_ends, ends)[:, 0], ends)[:, 0]
    first_points = points["initial"].detach().requires_grad_()
    u_first = net(first_points)[:, 0]
    speed = gradient(u_first, first_points)[:, 1]
    misfit = net(points["data"])[:, 0] - values["data"]
    terms = (misfit, residual, u_ends, bending, u_first - values["initial"], speed)
    return sum((term**2).mean() for term in terms)


def epochs(loss: Callable[[], torch.Tensor], parameters, rate: float) -> Callable[[int], list]:
    """A function that runs so many epochs of Adam and gives the loss before each."""
    optimiser = torch.optim.Adam(parameters, lr=rate)

    def run(count: int) -> list[float]:
        found = []
        for _ in range(count):
            optimiser.zero_grad()
            value = loss()
            value.backward()
            optimiser.step()
            found.append(value.detach())
        return [float(value) for value in found]

    return run


def pinv(layers, points, values, rate: float) -> Callable[[int], list]:
    """Epochs of pinv from given weights."""
    net, points, values = network(layers), *_tensors(points, values)
    return epochs(lambda: pinv_loss(net, points, values), [*net.parameters()], rate)


def beam(layers, points, values, rate: float, alpha: float) -> Callable[[int], list]:
    """Epochs of the beam from given weights."""
    net, points, values = network(layers), *_tensors(points, values)
    unknown = torch.nn.Parameter(torch.tensor(alpha))
    parameters = [*net.parameters(), unknown]
    return epochs(lambda: beam_loss(net, unknown, points, values), parameters, rate)


def _tensors(*groups):
    return [{name: tensor(array) for name, array in group.items()} for group in groups]
