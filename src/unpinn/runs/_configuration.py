"""What a run is: plain settings, from which the same run can be posed again."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn._files import plain
from unpinn.training import BUDGETS

RECIPES = ("default", "paper")
PROTOCOLS = ("default", "paper")
PRESETS = ("paper", "released")


@dataclass(frozen=True)
class Configuration:
    """The settings of a run.

    Arguments:
        problem: a benchmark's name, or the path of a Python file that states a problem.
        method: how noise is survived.
        recipe: how to unlearn, for the methods that do.
        protocol: how the baseline is trained: as is recommended, or as the paper does.
        preset: whose benchmark settings: the paper's text, or the released configuration.
        seed: of everything random, the simulated noise included.
        budget: a fraction of the epochs: "quick", "short" or "paper".
        epochs: the baseline's epochs in all, instead of a budget.
        options: the method's own settings.
        noise: changes of the benchmark's noise: "high", "low", "share", "kind".
        data: the readings' file, for a problem file.

    >>> Configuration("heat", seed=43).name
    'heat-ppinn-43'
    """

    problem: str
    method: str = "ppinn"
    recipe: str = "default"
    protocol: str = "default"
    preset: str = "paper"
    seed: int = 42
    budget: str = "paper"
    epochs: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    noise: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None

    def __post_init__(self):
        _check_kinds(self)
        _choice("recipe", self.recipe, RECIPES)
        _choice("protocol", self.protocol, PROTOCOLS)
        _choice("preset", self.preset, PRESETS)
        _choice("budget", self.budget, tuple(BUDGETS))
        if self.seed < 0:
            raise UserError(f"a seed must be a whole number of zero or more, not {self.seed}")
        if self.epochs is not None and self.epochs < 1:
            raise UserError(f"epochs must be 1 or more, not {self.epochs}")
        if self.epochs is not None and self.budget != "paper":
            raise UserError("epochs and budget both say how long to train; give one of them")
        for name in self.noise:
            if name not in ("high", "low", "share", "kind"):
                raise UserError(f"noise has no {name!r}; it has high, low, share and kind")
        if self.is_file and self.noise:
            raise UserError("noise is simulated for benchmarks only; a problem file has readings")
        if self.data is not None and not self.is_file:
            raise UserError(
                f"{self.problem} is a benchmark and simulates its readings; leave the data file out"
            )

    @property
    def is_file(self) -> bool:
        """Whether the problem is stated in a file of the user's own."""
        return self.problem.endswith(".py")

    @property
    def noise_name(self) -> str | None:
        """Whose noise: "paper", "released", or "custom"; None where readings are not simulated."""
        if self.is_file:
            return None
        return "custom" if self.noise else self.preset

    @property
    def name(self) -> str:
        """A short name for a directory: settings that are not the usual ones add a digest."""
        stem = Path(self.problem).stem if self.is_file else self.problem
        short = f"{stem}-{self.method}-{self.seed}"
        usual = Configuration(self.problem, self.method, seed=self.seed)
        if self == usual:
            return short
        digest = hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode())
        return f"{short}-{digest.hexdigest()[:6]}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON's types."""
        return plain(asdict(self))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Configuration:
        """Read back what `to_dict` gave."""
        if not isinstance(content, Mapping):
            raise TypeError(f"a {type(content).__name__} where settings are needed")
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in content.items() if name in known})


def parse_options(settings: list[str]) -> dict[str, Any]:
    """Settings such as "share=0.6" as values: numbers, true, false, null, lists, or else text.

    >>> parse_options(["share=0.6", "criterion=random", "layers=[0,1]"])
    {'share': 0.6, 'criterion': 'random', 'layers': [0, 1]}
    """
    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UserError(f"--set takes name=value, not {setting!r}")
        if name in options:
            raise UserError(f"--set gives {name!r} twice; give it once")
        try:
            options[name] = json.loads(text)
        except ValueError:
            options[name] = text.strip()
    return options


def _check_kinds(asked: Configuration) -> None:
    """Settings come from files too, so a number may stand where a word belongs."""

    def refuse(name: str, kind: str) -> None:
        raise UserError(f"{name} must be {kind}, not {getattr(asked, name)!r}")

    for name in ("problem", "method", "recipe", "protocol", "preset", "budget"):
        if not isinstance(getattr(asked, name), str):
            refuse(name, "a text")
    if asked.data is not None and not isinstance(asked.data, str):
        refuse("data", "the name of a file")
    for name in ("options", "noise"):
        if not isinstance(getattr(asked, name), Mapping):
            refuse(name, "a table of settings")
    for name in ("seed", "epochs"):
        value = getattr(asked, name)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and not (name == "epochs" and value is None):
            refuse(name, "a whole number")
    for name, value in asked.noise.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (isinstance(value, str) if name == "kind" else number):
            raise UserError(
                f"noise's {name} must be a {'text' if name == 'kind' else 'number'}, not {value!r}"
            )


def _choice(what: str, value: str, known: tuple[str, ...]) -> None:
    if value in known:
        return
    close = difflib.get_close_matches(value, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UserError(f"there is no {what} {value!r} (those are {', '.join(known)}){hint}")
