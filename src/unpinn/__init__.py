"""Inverse problems from noisy readings: physics-informed networks that unlearn the bad ones.

What is written here is all that most uses need. A name is imported when it is first used, so that
`import unpinn` costs nothing; the folders beside this file hold the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from unpinn._errors import UserError as UserError
from unpinn._version import __version__ as __version__

if TYPE_CHECKING:
    from unpinn.benchmarks import BENCHMARKS as BENCHMARKS
    from unpinn.benchmarks import Benchmark as Benchmark
    from unpinn.benchmarks import Noise as Noise
    from unpinn.benchmarks import benchmark as benchmark
    from unpinn.network import Architecture as Architecture
    from unpinn.problem import Condition as Condition
    from unpinn.problem import Field as Field
    from unpinn.problem import Grid as Grid
    from unpinn.problem import Measurement as Measurement
    from unpinn.problem import Observations as Observations
    from unpinn.problem import Points as Points
    from unpinn.problem import Problem as Problem
    from unpinn.problem import Random as Random
    from unpinn.problem import Sampler as Sampler
    from unpinn.problem import Scalar as Scalar
    from unpinn.problem import Sobol as Sobol
    from unpinn.problem import observe as observe
    from unpinn.readings import read_observations as read_observations
    from unpinn.training import Adam as Adam
    from unpinn.training import Fit as Fit
    from unpinn.training import Lbfgs as Lbfgs
    from unpinn.training import Partition as Partition
    from unpinn.training import Protocol as Protocol
    from unpinn.training import Pruning as Pruning
    from unpinn.training import Status as Status
    from unpinn.training import load as load
    from unpinn.training import recommended as recommended
    from unpinn.training import train as train
    from unpinn.unlearning import ByMixture as ByMixture
    from unpinn.unlearning import ByShare as ByShare
    from unpinn.unlearning import ByThreshold as ByThreshold
    from unpinn.unlearning import Recipe as Recipe
    from unpinn.unlearning import Schedule as Schedule
    from unpinn.unlearning import default_recipe as default_recipe
    from unpinn.unlearning import paper_recipe as paper_recipe
    from unpinn.unlearning import unlearn as unlearn

_NAMES = {
    "benchmarks": ("BENCHMARKS", "Benchmark", "Noise", "benchmark"),
    "network": ("Architecture",),
    "problem": (
        "Condition", "Field", "Grid", "Measurement", "Observations", "Points", "Problem",
        "Random", "Sampler", "Scalar", "Sobol", "observe",
    ),
    "readings": ("read_observations",),
    "training": (
        "Adam", "Fit", "Lbfgs", "Partition", "Protocol", "Pruning", "Status", "load",
        "recommended", "train",
    ),
    "unlearning": (
        "ByMixture", "ByShare", "ByThreshold", "Recipe", "Schedule", "default_recipe",
        "paper_recipe", "unlearn",
    ),
}  # fmt: skip
_PLACES = {name: folder for folder, names in _NAMES.items() for name in names}
_FOLDERS = (
    *_NAMES,
    "adapters",
    "evaluation",
    "export",
    "precision",
    "report",
    "rivals",
    "runs",
    "study",
)

__all__ = ["UserError", "__version__", *_PLACES]


def __getattr__(name: str) -> object:
    """Import a public name, or one of the folders, on its first use."""
    if name in _PLACES:
        value = getattr(import_module(f"unpinn.{_PLACES[name]}"), name)
        globals()[name] = value
        return value
    if name in _FOLDERS:
        return import_module(f"unpinn.{name}")
    raise AttributeError(f"module 'unpinn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_FOLDERS})
