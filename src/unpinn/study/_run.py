"""One run of a study: its settings, and the address that everything deciding its numbers gives it.

The address is a digest of the problem's statement, the readings, the method with its options, the
protocol and recipe as they were resolved (not by name, so that a recipe that is tuned gets a new
address), the seed, and the version of the numerics. That version is `NUMERICS` with the package's
own: a digest of the sources would discard hours of work for a renamed variable, so whoever changes
what is computed raises `NUMERICS`. A digest of the sources is kept beside each result instead, and
a report says when results stem from several.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn._files import plain
from unpinn._version import __version__
from unpinn.benchmarks import BENCHMARKS
from unpinn.problem._fingerprint import fingerprint
from unpinn.rivals import method_named
from unpinn.runs import Configuration, Posed, check_method, pose
from unpinn.study._unlearning import changed_recipe

NUMERICS = 1
"""Raised with every change after which the same settings give other numbers."""

BASELINE = "pinn"


@dataclass(frozen=True, eq=False)
class Run:
    """Settings of one run.

    Arguments:
        configuration: problem, method, seed, budget and all that a single run can be told.
        unlearning: changes of the recipe, for the methods that unlearn.
        network: changes of the architecture.

    >>> Run(Configuration("heat", seed=43)).baseline.configuration.method
    'pinn'
    """

    configuration: Configuration
    unlearning: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)

    @property
    def baseline(self) -> Run:
        """The plain network on the same readings, from which other methods start."""
        plainly = replace(self.configuration, method=BASELINE, options={})
        return replace(self, configuration=plainly, unlearning={})

    def to_dict(self) -> dict[str, Any]:
        """As JSON's types."""
        return {
            "configuration": self.configuration.to_dict(),
            "unlearning": plain(self.unlearning),
            "network": plain(self.network),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Run:
        """Read back what `to_dict` gave."""
        configuration = Configuration.from_dict(content["configuration"])
        return cls(configuration, content["unlearning"], content["network"])

    def posed(self, known: dict[str, Posed] | None = None) -> Posed:
        """The problem, the readings, the protocol and the recipe that these settings ask for.

        Arguments:
            known: keeps what runs share, so that their readings are simulated once.
        """
        known = {} if known is None else known
        plainly = replace(self.configuration, method=BASELINE, options={})
        shared = json.dumps(plainly.to_dict(), sort_keys=True)
        if shared not in known:
            known[shared] = pose(plainly)
        posed = replace(known[shared], configuration=self.configuration)
        check_method(posed)
        if self.network:
            posed = replace(posed, protocol=_with_network(posed.protocol, self.network))
        return replace(posed, recipe=changed_recipe(posed.recipe, self.unlearning))


def needs_baseline(run: Run) -> bool:
    """Whether the run starts from the plain network."""
    return method_named(run.configuration.method).needs_baseline


def address_of(run: Run, posed: Posed) -> str:
    """The run's place in a store: sixteen hexadecimal digits of all that decides its numbers."""
    return digest(content_of(run, posed))


def content_of(run: Run, posed: Posed) -> dict[str, Any]:
    """All that decides a run's numbers, in JSON's types."""
    method = method_named(run.configuration.method)
    protocol = posed.protocol.to_dict()
    # What starts from no network unlearns nothing.
    recipe = described(posed.recipe) if method.needs_baseline else None
    # What a protocol or a recipe is called decides nothing.
    protocol.pop("name")
    if recipe is not None:
        recipe.pop("name")
    name = run.configuration.problem
    # A fingerprint follows the byte code, which every version of Python writes differently, and
    # the last digits of readings, which processors compute differently. A benchmark's statement
    # and its readings are part of the numerics, so that its name, its noise and the seed say as
    # much, everywhere.
    bench = posed.readings if name in BENCHMARKS else None
    return {
        "numerics": [NUMERICS, __version__],
        "problem": [name, run.configuration.preset] if bench else posed.problem.fingerprint,
        "readings": described(bench.noise) if bench else posed.observations.fingerprint,
        "method": method.name,
        "options": described({**method.options, **run.configuration.options}),
        "seed": run.configuration.seed,
        "protocol": described(protocol),
        "recipe": recipe,
    }


def described(value: Any) -> Any:
    """Anything as JSON's types, so that equal texts mean equal settings.

    >>> described({"share": 1.0, "layers": (0, 1)})
    {'layers': [0, 1], 'share': 1}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value)]
        about = {name: described(getattr(value, name)) for name in names}
        return {"type": type(value).__name__, **about}
    if isinstance(value, Mapping):
        return {str(key): described(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    if isinstance(value, (bool, str, int)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        # 1 and 1.0 are the same setting.
        return int(value) if float(value).is_integer() else float(value).hex()
    return fingerprint(value)


def _with_network(protocol, changes: Mapping[str, Any]):
    known = [f.name for f in dataclasses.fields(protocol.architecture)]
    for name in changes:
        if name not in known:
            raise UserError(f"a network has no {name!r} (it has {', '.join(known)})")
    return replace(protocol, architecture=replace(protocol.architecture, **changes))


def digest(content: Any) -> str:
    """Sixteen hexadecimal digits of something in JSON's types."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
