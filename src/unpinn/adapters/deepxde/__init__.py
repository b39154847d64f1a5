"""Unlearning for DeepXDE models on the PyTorch backend."""

from unpinn.adapters.deepxde._readings import Readings as Readings
from unpinn.adapters.deepxde._unlearn import unlearn as unlearn
