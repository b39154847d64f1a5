"""The architectures: the paper's MLP, a gated one, a residual one, and Fourier features."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn.network._activations import activation as activation_named
from unpinn.network._fixed import Fixed
from unpinn.network._network import Hook, Linear, Network, full_masks, kept, make_linear
from unpinn.network._series import Series


class MLP(Network):
    """Linear layers with a nonlinearity between; the paper's network is 5 layers of 100, tanh.

    >>> net = MLP.make(jax.random.key(0), inputs=2, outputs=1)
    >>> net.widths
    (100, 100, 100, 100, 100)
    """

    hidden: tuple[Linear, ...]
    output: Linear
    masks: tuple[Fixed, ...]
    activation: str = eqx.field(static=True, default="tanh")

    @classmethod
    def make(
        cls, key, inputs: int, outputs: int, width: int = 100, depth: int = 5,
        activation: str = "tanh", start: str = "uniform",
    ) -> MLP:  # fmt: skip
        """A freshly drawn network."""
        activation_named(activation)
        keys = jax.random.split(key, depth + 1)
        sizes = [inputs, *[width] * depth]
        hidden = tuple(
            make_linear(k, a, b, start)
            for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=False)
        )
        output = make_linear(keys[-1], width, outputs, start)
        return cls(hidden, output, full_masks([width] * depth), activation)

    def forward(self, series: Series, hook: Hook | None = None) -> Series:
        """Layer after layer."""
        f = activation_named(self.activation)
        for number, layer in enumerate(self.hidden):
            series = self.neurons(number, layer(series).activate(f), hook)
        return self.output(series)

    def incoming(self, layer: int) -> Linear:
        """The layer itself."""
        return self.hidden[layer]

    def following(self, layer: int) -> Linear:
        """The next hidden layer, or the output."""
        return self.hidden[layer + 1] if layer + 1 < len(self.hidden) else self.output

    def with_following(self, layer: int, linear: Linear) -> MLP:
        """A copy with the next layer replaced."""
        if layer + 1 < len(self.hidden):
            return eqx.tree_at(lambda net: net.hidden[layer + 1], self, linear)
        return eqx.tree_at(lambda net: net.output, self, linear)

    def compact(self) -> MLP:
        """Without the rows and columns of removed neurons."""
        hidden, last = [], None
        for layer, mask in zip(self.hidden, self.masks, strict=True):
            keep = kept(mask)
            hidden.append(_cut(layer, rows=keep, columns=last))
            last = keep
        masks = full_masks_like(self.masks, [len(kept(mask)) for mask in self.masks])
        return MLP(tuple(hidden), _cut(self.output, columns=last), masks, self.activation)


class ModifiedMLP(Network):
    """Two encoders of the input gate every layer: h_l = (1 - z_l) U + z_l V (Wang et al. 2021).

    Its prunable neurons are the entries of h_l. The encoders are shared by all layers, so each
    layer picks the encoder entries that its remaining neurons need.
    """

    encoders: tuple[Linear, Linear]
    hidden: tuple[Linear, ...]
    output: Linear
    masks: tuple[Fixed, ...]
    picks: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    activation: str = eqx.field(static=True, default="tanh")

    @classmethod
    def make(
        cls, key, inputs: int, outputs: int, width: int = 100, depth: int = 5,
        activation: str = "tanh", start: str = "glorot",
    ) -> ModifiedMLP:  # fmt: skip
        """A freshly drawn network."""
        activation_named(activation)
        keys = jax.random.split(key, depth + 3)
        low, high = (make_linear(k, inputs, width, start) for k in keys[:2])
        sizes = [inputs, *[width] * depth]
        hidden = tuple(
            make_linear(k, a, b, start)
            for k, a, b in zip(keys[2:-1], sizes[:-1], sizes[1:], strict=True)
        )
        output = make_linear(keys[-1], width, outputs, start)
        everything = (tuple(range(width)),) * depth
        masks = full_masks([width] * depth)
        return cls((low, high), hidden, output, masks, everything, activation)

    def forward(self, series: Series, hook: Hook | None = None) -> Series:
        """Gate after gate."""
        f = activation_named(self.activation)
        low, high = (encoder(series).activate(f) for encoder in self.encoders)
        width = low.width
        for number, layer in enumerate(self.hidden):
            gate = layer(series).activate(f)
            pick = self.picks[number]
            every = pick == tuple(range(width))
            below, above = (s if every else s.select(np.array(pick, int)) for s in (low, high))
            series = self.neurons(number, below + gate * (above - below), hook)
        return self.output(series)

    def incoming(self, layer: int) -> Linear:
        """The gate's layer."""
        return self.hidden[layer]

    def following(self, layer: int) -> Linear:
        """The next gate's layer, or the output."""
        return self.hidden[layer + 1] if layer + 1 < len(self.hidden) else self.output

    def with_following(self, layer: int, linear: Linear) -> ModifiedMLP:
        """A copy with the next layer replaced."""
        if layer + 1 < len(self.hidden):
            return eqx.tree_at(lambda net: net.hidden[layer + 1], self, linear)
        return eqx.tree_at(lambda net: net.output, self, linear)

    def compact(self) -> ModifiedMLP:
        """Without removed neurons, and without encoder entries that no layer picks any more."""
        keeps = [kept(mask) for mask in self.masks]
        picks = [np.array(p, int)[k] for p, k in zip(self.picks, keeps, strict=True)]
        used = np.unique(np.concatenate(picks))
        place = {int(entry): number for number, entry in enumerate(used)}
        low, high = self.encoders
        hidden, last = [], None
        for layer, keep in zip(self.hidden, keeps, strict=True):
            hidden.append(_cut(layer, rows=keep, columns=last))
            last = keep
        return ModifiedMLP(
            (_cut(low, rows=used), _cut(high, rows=used)),
            tuple(hidden),
            _cut(self.output, columns=last),
            full_masks_like(self.masks, [len(keep) for keep in keeps]),
            tuple(tuple(place[int(p)] for p in pick) for pick in picks),
            self.activation,
        )


class ResidualMLP(Network):
    """Residual blocks h <- h + W2 f(W1 h); its prunable neurons are the inner ones of a block."""

    entry: Linear
    inner: tuple[Linear, ...]
    outer: tuple[Linear, ...]
    output: Linear
    masks: tuple[Fixed, ...]
    activation: str = eqx.field(static=True, default="tanh")

    @classmethod
    def make(
        cls, key, inputs: int, outputs: int, width: int = 100, depth: int = 5,
        activation: str = "tanh", start: str = "uniform",
    ) -> ResidualMLP:  # fmt: skip
        """A freshly drawn network of `depth` blocks."""
        activation_named(activation)
        keys = jax.random.split(key, 2 * depth + 2)
        return cls(
            make_linear(keys[0], inputs, width, start),
            tuple(make_linear(k, width, width, start) for k in keys[1 : depth + 1]),
            tuple(make_linear(k, width, width, start) for k in keys[depth + 1 : -1]),
            make_linear(keys[-1], width, outputs, start),
            full_masks([width] * depth),
            activation,
        )

    def forward(self, series: Series, hook: Hook | None = None) -> Series:
        """Block after block."""
        f = activation_named(self.activation)
        stream = self.entry(series).activate(f)
        for number, (inner, outer) in enumerate(zip(self.inner, self.outer, strict=True)):
            stream = stream + outer(self.neurons(number, inner(stream).activate(f), hook))
        return self.output(stream)

    def incoming(self, layer: int) -> Linear:
        """The block's inner layer."""
        return self.inner[layer]

    def following(self, layer: int) -> Linear:
        """The block's outer layer."""
        return self.outer[layer]

    def with_following(self, layer: int, linear: Linear) -> ResidualMLP:
        """A copy with the block's outer layer replaced."""
        return eqx.tree_at(lambda net: net.outer[layer], self, linear)

    def compact(self) -> ResidualMLP:
        """Without the removed inner neurons."""
        keeps = [kept(mask) for mask in self.masks]
        return ResidualMLP(
            self.entry,
            tuple(_cut(layer, rows=k) for layer, k in zip(self.inner, keeps, strict=True)),
            tuple(_cut(layer, columns=k) for layer, k in zip(self.outer, keeps, strict=True)),
            self.output,
            full_masks_like(self.masks, [len(keep) for keep in keeps]),
            self.activation,
        )


class FourierMLP(Network):
    """Random Fourier features of the input (Tancik et al. 2020), then an MLP.

    The frequencies are drawn once and not trained: b ~ N(0, spread^2).
    """

    frequencies: Fixed
    mlp: MLP

    @property
    def masks(self) -> tuple[Fixed, ...]:
        """The MLP's."""
        return self.mlp.masks

    @classmethod
    def make(
        cls, key, inputs: int, outputs: int, width: int = 100, depth: int = 5,
        activation: str = "tanh", start: str = "uniform", features: int = 32, spread: float = 1.5,
    ) -> FourierMLP:  # fmt: skip
        """A freshly drawn network."""
        key_frequencies, key_mlp = jax.random.split(key)
        drawn = spread * jax.random.normal(key_frequencies, (features, inputs), jnp.float32)
        mlp = MLP.make(key_mlp, 2 * features, outputs, width, depth, activation, start)
        return cls(Fixed(drawn), mlp)

    def forward(self, series: Series, hook: Hook | None = None) -> Series:
        """Features, then the MLP."""
        phases = series.linear(jnp.asarray(self.frequencies.array))
        quarter = phases.shift(jnp.asarray(np.pi / 2, phases.dtype))
        sine = activation_named("sin")
        waves = [part.activate(sine) for part in (phases, quarter)]
        return self.mlp.forward(Series.concatenate(waves), hook)

    def incoming(self, layer: int) -> Linear:
        """The MLP's."""
        return self.mlp.incoming(layer)

    def following(self, layer: int) -> Linear:
        """The MLP's."""
        return self.mlp.following(layer)

    def with_following(self, layer: int, linear: Linear) -> FourierMLP:
        """A copy with the MLP's layer replaced."""
        return FourierMLP(self.frequencies, self.mlp.with_following(layer, linear))

    def with_masks(self, masks) -> FourierMLP:
        """A copy with the MLP's masks replaced."""
        return eqx.tree_at(lambda net: net.mlp, self, self.mlp.with_masks(masks))

    def compact(self) -> FourierMLP:
        """A copy with the MLP compacted."""
        return FourierMLP(self.frequencies, self.mlp.compact())


def _cut(layer: Linear, rows=None, columns=None) -> Linear:
    weight, bias = layer.weight, layer.bias
    if columns is not None:
        weight = weight[:, columns]
    if rows is not None:
        weight, bias = weight[rows], bias[rows]
    return Linear(weight, bias)


def full_masks_like(masks: tuple[Fixed, ...], widths) -> tuple[Fixed, ...]:
    """All-keeping masks of other widths in the same precision."""
    return tuple(
        Fixed(jnp.ones(width, mask.array.dtype)) for mask, width in zip(masks, widths, strict=True)
    )


ARCHITECTURES: dict[str, type[Network]] = {
    "mlp": MLP,
    "modified": ModifiedMLP,
    "residual": ResidualMLP,
    "fourier": FourierMLP,
}
