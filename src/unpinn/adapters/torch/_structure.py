r"""Which hidden neurons there are, and which linear layers read them: found by asking the module.

With the outputs of all linear layers held at fixed random values, changing those of one layer
shows which inputs of which layers they reach through everything that is not linear: activations,
sums, concatenations, gates. Neuron j of a layer of n is changed in the probes whose number is a
binary digit of j that is one, so $2\log_2 n$ probes tell for every input by which neuron it is fed.
A neuron can be removed if all that it feeds are inputs of linear layers that nothing else feeds,
except neurons of other layers that go with it (a residual stream).
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from unpinn._errors import UserError
from unpinn.adapters.torch._probe import Forward, Run, linear_layers, run

_ROWS = 16


@dataclass(frozen=True, eq=False)
class Part:
    """The neurons' places in one linear layer: rows of its weight, or columns.

    Arguments:
        layer: its name.
        places: one a neuron.
    """

    layer: str
    places: np.ndarray


@dataclass(frozen=True, eq=False)
class HiddenLayer:
    """Neurons that can be removed one by one.

    Arguments:
        writes: the linear layers whose rows they are; several where layers are coupled.
        reads: the linear layers whose columns they feed.
    """

    writes: tuple[Part, ...]
    reads: tuple[Part, ...]

    @property
    def name(self) -> str:
        """The names of the layers that write."""
        return " + ".join(part.layer for part in self.writes)

    @property
    def width(self) -> int:
        """How many neurons."""
        return len(self.writes[0].places)

    @property
    def coupled(self) -> bool:
        """Whether a neuron of one layer can only go together with one of another."""
        return len(self.writes) > 1


def find_layers(
    module: torch.nn.Module,
    points: torch.Tensor,
    forward: Forward,
    names: Sequence[str] | None = None,
) -> tuple[HiddenLayer, ...]:
    """The hidden layers in the order in which they are used.

    Arguments:
        module: the network.
        points: some points that it takes, (n, dimensions).
        forward: how it is evaluated.
        names: linear layers to take; unless told, all whose neurons are their own, or, where there
            are none, the coupled ones.
    """
    probe = _Probe(module, points, forward)
    found = probe.layers()
    if names is not None:
        return _named(names, found, module, probe)
    plain = tuple(layer for layer in found if not layer.coupled)
    if not found:
        why = "; ".join(f"{name} {reason}" for name, reason in probe.reasons(found).items())
        raise UserError(
            "the module has no hidden linear layer whose neurons could be removed"
            + (f" ({why})" if why else "; unlearning needs torch.nn.Linear layers with an "
               "activation between")
        )  # fmt: skip
    return plain or found


def _named(names, found: tuple[HiddenLayer, ...], module, probe: _Probe):
    known = linear_layers(module)
    reasons = probe.reasons(found)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f" ({', '.join(known)})"
            raise UserError(f"the module has no linear layer {name!r}{hint}")
        if name in reasons:
            raise UserError(f"the layer {name!r} cannot be pruned: it {reasons[name]}")
    wanted = set(names)
    return tuple(lay for lay in found if wanted & {part.layer for part in lay.writes})


class _Probe:
    """The answers of one module."""

    def __init__(self, module: torch.nn.Module, points: torch.Tensor, forward: Forward):
        self.module, self.forward = module, forward
        self.generator = torch.Generator().manual_seed(0)
        rows = np.resize(np.arange(len(points)), _ROWS)
        self.points = points[torch.as_tensor(rows, device=points.device)]
        self.held: dict[tuple[str, int], torch.Tensor] = {}
        self.widths = {name: m.out_features for name, m in linear_layers(module).items()}
        self.base = self._run(self.points)
        self.bad_columns: set[tuple[str, int]] = set()
        self.outward: set[str] = set()
        self.mixed: set[str] = set()
        self.fed: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
        self._ask()

    def _run(self, points: torch.Tensor, change: tuple[str, np.ndarray] | None = None) -> Run:
        """All linear outputs held, but for some neurons of one layer."""

        def replace(name: str, number: int, output: torch.Tensor) -> torch.Tensor:
            if (name, number) not in self.held:
                self.held[name, number] = self._draw(output)
            value = self.held[name, number]
            if change is None or change[0] != name:
                return value
            chosen = torch.as_tensor(change[1], device=value.device)
            return torch.where(chosen, self._draw(output), value)

        return run(self.module, points, self.forward, replace)

    def _draw(self, like: torch.Tensor) -> torch.Tensor:
        # Of order one, whatever the trained outputs are: there every activation is lively.
        drawn = torch.randn(like.shape, generator=self.generator, dtype=torch.float64)
        return drawn.to(like.device, like.dtype)

    def _ask(self) -> None:
        elsewhere = self._run(self.points + torch.rand_like(self.points))
        for name, moved in _moved(self.base, elsewhere).items():
            self.bad_columns |= {(name, int(c)) for c in np.flatnonzero(moved)}
        for name in self.base.inputs:
            self._ask_layer(name)

    def _ask_layer(self, writer: str) -> None:
        """Decode which neuron of one layer feeds which input."""
        width = self.widths[writer]
        digits = max(1, int(np.ceil(np.log2(width))))
        numbers = np.arange(width)
        ones: dict[str, np.ndarray] = {}
        zeros: dict[str, np.ndarray] = {}
        for digit in range(digits):
            bit = (numbers >> digit) & 1 == 1
            for table, chosen in ((ones, bit), (zeros, ~bit)):
                changed = self._run(self.points, (writer, chosen))
                if not torch.equal(changed.output, self.base.output):
                    self.outward.add(writer)
                for reader, moved in _moved(self.base, changed).items():
                    grown = table.setdefault(reader, np.zeros((digits, len(moved)), bool))
                    grown[digit] = moved
        for reader, one in ones.items():
            zero = zeros[reader]
            several = (one & zero).any(axis=0)
            single = (one ^ zero).all(axis=0)
            if several.any():
                self.mixed.add(writer)
                self.bad_columns |= {(reader, int(c)) for c in np.flatnonzero(several)}
            codes = (one * (1 << np.arange(digits))[:, None]).sum(axis=0)
            for column in np.flatnonzero(single):
                self.fed[reader, int(column)].add((writer, int(codes[column])))

    def layers(self) -> tuple[HiddenLayer, ...]:
        """Neurons that go together, gathered into layers of the same shape."""
        gathered: dict[tuple, list[tuple[list, list]]] = defaultdict(list)
        for writers, readers in self._together():
            spoilt = any(w in self.outward or w in self.mixed for w, _ in writers)
            spoilt |= any(place in self.bad_columns for place in readers)
            names = [w for w, _ in writers]
            if spoilt or len(set(names)) < len(names):
                continue
            gathered[tuple(names), tuple(r for r, _ in readers)].append((writers, readers))
        order = list(self.base.inputs)
        found = [
            HiddenLayer(_parts(names, [w for w, _ in many]), _parts(reads, [r for _, r in many]))
            for (names, reads), many in gathered.items()
        ]
        return tuple(sorted(found, key=lambda lay: order.index(lay.writes[0].layer)))

    def _together(self):
        """Connected sets of neurons and inputs, ordered by their first neuron."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        neurons = sorted(
            {neuron for feeding in self.fed.values() for neuron in feeding},
            key=lambda neuron: (list(self.base.inputs).index(neuron[0]), neuron[1]),
        )
        places = list(self.fed)
        number = {neuron: k for k, neuron in enumerate(neurons)}
        links = [(number[n], len(neurons) + k) for k, p in enumerate(places) for n in self.fed[p]]
        if not links:
            return
        one, other = np.array(links).T
        size = len(neurons) + len(places)
        graph = coo_array((np.ones(len(one)), (one, other)), shape=(size, size))
        _, label = connected_components(graph, directed=False)
        members: dict[int, tuple[list, list]] = {}
        for k, neuron in enumerate(neurons):
            members.setdefault(int(label[k]), ([], []))[0].append(neuron)
        for k, place in enumerate(places):
            members[int(label[len(neurons) + k])][1].append(place)
        for writers, readers in members.values():
            yield writers, sorted(readers, key=lambda place: (places_order(place, self), place[1]))

    def reasons(self, found: tuple[HiddenLayer, ...]) -> dict[str, str]:
        """Why each layer that was not found cannot be pruned."""
        good = {part.layer for layer in found for part in layer.writes}
        feeding = {writer for writers in self.fed.values() for writer, _ in writers}
        told = {}
        for name in self.widths:
            if name in good:
                continue
            if name not in self.base.inputs:
                told[name] = "is never called"
            elif name in self.outward:
                told[name] = "feeds the output directly"
            elif name in self.mixed:
                told[name] = "is mixed with its neighbours before the next linear layer"
            elif name in feeding:
                told[name] = "feeds inputs that also carry something else"
            else:
                told[name] = "feeds no other linear layer"
        return told


def places_order(place: tuple[str, int], probe: _Probe) -> int:
    """When a reading layer is first called."""
    return list(probe.base.inputs).index(place[0])


def _parts(names: tuple[str, ...], many: list[list[tuple[str, int]]]) -> tuple[Part, ...]:
    places = np.array([[place for _, place in one] for one in many])
    return tuple(Part(name, places[:, k]) for k, name in enumerate(names))


def _moved(base: Run, other: Run) -> dict[str, np.ndarray]:
    """Which input columns of which layers differ between two runs."""
    out = {}
    for name, calls in base.inputs.items():
        moved = torch.zeros(calls[0].shape[1], dtype=torch.bool, device=calls[0].device)
        for one, two in zip(calls, other.inputs.get(name, []), strict=True):
            moved |= (one != two).any(dim=0)
        out[name] = moved.cpu().numpy()
    return out
