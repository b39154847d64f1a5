"""Unlearning for DeepXDE models on the PyTorch backend."""

from unpinn.adapters._extras import need

need("deepxde", "DeepXDE", "unpinn[deepxde]")
need("torch", "PyTorch", "unpinn[deepxde]")

# ruff: noqa: E402
from unpinn.adapters.deepxde._readings import Readings as Readings
from unpinn.adapters.deepxde._unlearn import unlearn as unlearn
