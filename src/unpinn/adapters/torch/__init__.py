"""Unlearning for PyTorch modules, and weights between PyTorch and this package."""

from unpinn.adapters._extras import need

need("torch", "PyTorch", "unpinn[torch]")

# ruff: noqa: E402
from unpinn.adapters.torch._compaction import Compacted as Compacted
from unpinn.adapters.torch._compaction import compacted as compacted
from unpinn.adapters.torch._convert import from_torch as from_torch
from unpinn.adapters.torch._convert import to_fit as to_fit
from unpinn.adapters.torch._convert import to_torch as to_torch
from unpinn.adapters.torch._prunable import TorchPrunable as TorchPrunable
from unpinn.adapters.torch._structure import HiddenLayer as HiddenLayer
from unpinn.adapters.torch._structure import find_layers as find_layers
from unpinn.adapters.torch._unlearn import unlearn as unlearn
