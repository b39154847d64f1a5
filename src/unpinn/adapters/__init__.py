"""The same unlearning for other frameworks' models: `torch` for PyTorch, `deepxde` for DeepXDE.

Neither framework is imported until its folder is.
"""

from importlib import import_module
from types import ModuleType

from unpinn.adapters._records import Snapshot as Snapshot
from unpinn.adapters._records import Unlearned as Unlearned
from unpinn.adapters._weights import load_mlp as load_mlp
from unpinn.adapters._weights import save_mlp as save_mlp

_FRAMEWORKS = ("torch", "deepxde")


def __getattr__(name: str) -> ModuleType:
    """Import a framework's folder on its first use."""
    if name in _FRAMEWORKS:
        return import_module(f"unpinn.adapters.{name}")
    raise AttributeError(f"module 'unpinn.adapters' has no attribute {name!r}")
