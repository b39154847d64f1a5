"""What every architecture provides, and what pruning asks of it."""

# No postponed annotations here: Equinox must see AbstractVar itself, not its name.
import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn._errors import UserError
from unpinn.network._fixed import Fixed
from unpinn.network._plan import Plan
from unpinn.network._series import Series

Hook = Callable[[int, Series], Series]


class Linear(eqx.Module):
    """A linear layer: weight (out, in) and bias (out,)."""

    weight: jax.Array
    bias: jax.Array

    def __call__(self, series: Series) -> Series:
        """Apply to every channel."""
        return series.linear(self.weight, self.bias)


class Network(eqx.Module):
    """An architecture: from points in [-1, 1]^d to columns, with prunable hidden neurons.

    An architecture writes `forward` with the operations of `Series`; it must call
    `self.neurons(layer, series, hook)` on every prunable hidden layer after its nonlinearity.
    Every prunable layer feeds exactly one linear layer, `following(layer)`, which is what makes
    folding and removing neurons exact. One that cannot be written so overrides
    `propagate` with `unpinn.network.propagate_by_jvp`.
    """

    if TYPE_CHECKING:
        # A checker takes an abstract variable for a field that comes first in every __init__.
        @property
        @abc.abstractmethod
        def masks(self) -> tuple[Fixed, ...]:
            """One a prunable hidden layer: 1 keeps a neuron, 0 removes it."""
    else:
        masks: eqx.AbstractVar[tuple[Fixed, ...]]

    @abc.abstractmethod
    def forward(self, series: Series, hook: Hook | None = None) -> Series:
        """The columns' series from the coordinates' series."""

    @abc.abstractmethod
    def following(self, layer: int) -> Linear:
        """The linear layer that a prunable hidden layer feeds."""

    @abc.abstractmethod
    def with_following(self, layer: int, linear: Linear) -> "Network":
        """A copy with that linear layer replaced."""

    @abc.abstractmethod
    def incoming(self, layer: int) -> Linear:
        """The linear layer that a prunable hidden layer's nonlinearity is fed by."""

    @abc.abstractmethod
    def compact(self) -> "Network":
        """A smaller copy without the masked neurons, equal to this one to rounding."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Neurons in each prunable hidden layer, removed ones included."""
        return tuple(mask.array.shape[0] for mask in self.masks)

    @property
    def alive(self) -> tuple[int, ...]:
        """Neurons left in each prunable hidden layer."""
        return tuple(int(np.count_nonzero(np.asarray(mask.array))) for mask in self.masks)

    def incoming_norms(self, layer: int) -> np.ndarray:
        """The norm of the weights that each neuron is fed by."""
        return np.linalg.norm(np.asarray(self.incoming(layer).weight), axis=1)

    def neurons(self, layer: int, series: Series, hook: Hook | None) -> Series:
        """Silence the removed neurons, then let the hook look (or change)."""
        series = series.scale(jnp.asarray(self.masks[layer].array))
        return series if hook is None else hook(layer, series)

    def propagate(self, points: jax.Array, plan: Plan, hook: Hook | None = None) -> Series:
        """The columns' series at points (n, d)."""
        return self.forward(Series.of_points(points, plan), hook)

    def __call__(self, points: jax.Array) -> jax.Array:
        """The columns at points (n, d)."""
        return self.propagate(points, Plan(points.shape[1])).value

    def activations(self, points: jax.Array) -> list[jax.Array]:
        """Every prunable hidden layer's values after the nonlinearity, (n, width) each."""
        seen: dict[int, jax.Array] = {}

        def look(layer: int, series: Series) -> Series:
            seen[layer] = series.value
            return series

        self.propagate(points, Plan(points.shape[1]), look)
        return [seen[layer] for layer in range(len(self.masks))]

    def with_masks(self, masks: Sequence[Any] | np.ndarray) -> "Network":
        """A copy with other masks (1 keeps a neuron, 0 removes it)."""
        fixed = tuple(
            Fixed(jnp.asarray(mask, old.array.dtype))
            for mask, old in zip(masks, self.masks, strict=True)
        )
        return eqx.tree_at(lambda network: network.masks, self, fixed)

    def fold(self, layer: int, constants: Any) -> "Network":
        """A copy in which the next layer's bias takes over what neurons contribute on average.

        Arguments:
            layer: the prunable layer.
            constants: each neuron's constant, zero for those that stay.
        """
        linear = self.following(layer)
        constants = jnp.asarray(constants, linear.bias.dtype)
        bias = linear.bias + linear.weight @ constants
        return self.with_following(layer, Linear(linear.weight, bias))


def kept(mask: Fixed) -> np.ndarray:
    """The places of the neurons that a mask keeps."""
    return np.flatnonzero(np.asarray(mask.array))


def make_linear(key: jax.Array, inputs: int, outputs: int, kind: str) -> Linear:
    """A linear layer, "uniform" in +-1/sqrt(inputs) (weights and biases) or "glorot"."""
    if kind not in ("uniform", "glorot"):
        raise UserError(f"the start {kind!r} of a network is not known; choose uniform or glorot")
    key_weight, key_bias = jax.random.split(key)
    if kind == "glorot":
        spread = np.sqrt(2.0 / (inputs + outputs))
        weight = spread * jax.random.normal(key_weight, (outputs, inputs), jnp.float32)
        return Linear(weight, jnp.zeros(outputs, jnp.float32))
    bound = 1.0 / np.sqrt(inputs)
    draw = lambda k, shape: jax.random.uniform(k, shape, jnp.float32, -bound, bound)  # noqa: E731
    return Linear(draw(key_weight, (outputs, inputs)), draw(key_bias, (outputs,)))


def full_masks(widths) -> tuple[Fixed, ...]:
    """Masks that keep everything."""
    return tuple(Fixed(jnp.ones(width, jnp.float32)) for width in widths)
