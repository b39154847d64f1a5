"""What a page tells of a fit in words: its unknowns, its protocol, its provenance."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpinn.problem import Grid, Measurement, Problem, Random, Scalar, Sobol
from unpinn.report._source import source_of
from unpinn.training import Fit

Interval = tuple[float, float]
_WRITTEN = {"degC": "°C", "degF": "°F", "deg": "°"}
_RAISED = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")


@dataclass(frozen=True)
class UnknownRow:
    """One unknown number, before and after unlearning.

    Arguments:
        name: its name.
        unit: its unit, "" where nobody said.
        initial: where training started.
        bounds: in words.
        before: what the baseline found, or None without one.
        after: what was found in the end.
        before_interval: of the baseline, or None.
        after_interval: of the result, or None.
        at_bound: whether a bound decided the value.
    """

    name: str
    unit: str
    initial: float
    bounds: str
    before: float | None
    after: float
    before_interval: Interval | None
    after_interval: Interval | None
    at_bound: bool


def number(value: Any, digits: int = 4) -> str:
    """A number for people to read.

    >>> number(0.00012351), number(123456.0), number(26461.7), number(-2.0), number(None)
    ('1.235×10⁻⁴', '1.235×10⁵', '26460', '−2', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        plain = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{plain}×10{str(int(power)).translate(_RAISED)}".replace("-", "−")
    # Rounded first, since the format "g" turns to powers of ten where digits run out.
    return f"{float(f'{value:.{digits - 1}e}'):.15g}".replace("-", "−")


def typeset(unit: str) -> str:
    """A unit with its powers raised.

    >>> typeset("kg m^-3"), typeset("m^2/s"), typeset("degC")
    ('kg m⁻³', 'm²/s', '°C')
    """
    unit = _WRITTEN.get(unit, unit)
    return re.sub(r"\^([-+]?\d+)", lambda found: found.group(1).translate(_RAISED), unit)


def unit_of(problem: Problem, name: str) -> str:
    """The unit of a coordinate, field or unknown, where the problem file told one."""
    units = problem.source.get("units", {})
    return typeset(str(units.get(name, ""))) if isinstance(units, Mapping) else ""


def with_unit(problem: Problem, name: str) -> str:
    """A name and its unit, as an axis tells them."""
    unit = unit_of(problem, name)
    return f"{name} ({unit})" if unit else name


def unknown_rows(
    fit: Fit,
    after: Mapping[str, Interval] | None = None,
    before: Mapping[str, Interval] | None = None,
) -> list[UnknownRow]:
    """All unknown numbers with their intervals, where there are any."""
    after, before = after or {}, before or {}
    rows = []
    for scalar in fit.problem.scalars:
        value = fit.unknowns[scalar.name]
        earlier = None if fit.before is None else fit.before.unknowns[scalar.name]
        rows.append(UnknownRow(
            scalar.name, unit_of(fit.problem, scalar.name), float(scalar.initial), _bounds(scalar),
            earlier, value, before.get(scalar.name), after.get(scalar.name),
            scalar.at_bound(value),
        ))  # fmt: skip
    return rows


def _bounds(scalar: Scalar) -> str:
    low, high = scalar.bounds
    told = {
        (False, False): "free",
        (True, False): f"above {number(low)}",
        (False, True): f"below {number(high)}",
        (True, True): f"{number(low)} to {number(high)}",
    }[(low is not None, high is not None)]
    return f"{told}, log scale" if scalar.log else told


def asked(problem: Problem) -> dict[str, Any]:
    """The statement of the problem in words and in the user's own code."""
    rows = []
    for name, (low, high) in problem.coordinates.items():
        rows.append({
            "name": name, "unit": unit_of(problem, name), "low": number(low), "high": number(high),
            "kind": "time" if name == problem.time else "space",
        })  # fmt: skip
    conditions = []
    for place, condition in enumerate(problem.conditions):
        conditions.append({
            "name": condition.name, "source": source_of(condition.residual),
            "kind": problem.condition_kind(place), "at": _place(condition.at),
        })  # fmt: skip
    return {
        "coordinates": rows,
        "fields": [{"name": n, "unit": unit_of(problem, n)} for n in problem.fields],
        "unknown_fields": [
            {"name": f.name, "unit": unit_of(problem, f.name)} for f in problem.unknown_fields
        ],
        "equations": [{"name": n, "source": source_of(f)} for n, f in problem.equations.items()],
        "conditions": conditions,
        "measurements": [
            {
                "name": name,
                "unit": unit_of(problem, name),
                "source": source_of(m.function),
            }
            for name, m in problem.measurements.items()
            if isinstance(m, Measurement)
        ],
        "collocation": _points(problem.collocation),
    }


def _points(sampler: Any) -> str:
    """Where equations are enforced, in words."""
    chosen = ", those in a part of the domain" if getattr(sampler, "where", None) else ""
    if isinstance(sampler, Grid):
        return f"a grid of {' × '.join(f'{count:,}' for count in sampler.counts)} points{chosen}"
    if isinstance(sampler, (Sobol, Random)):
        return f"{sampler.count:,} {type(sampler).__name__} points{chosen}"
    return "points of its own"


def _place(at: Any) -> str:
    if at is None:
        return "everywhere"
    if isinstance(at, str):
        return at
    places = [at] if isinstance(at, Mapping) else list(at)
    return " or ".join(
        " and ".join(
            f"{name} {'= ' if not isinstance(value, str) else ''}"
            f"{value if isinstance(value, str) else number(float(value))}"
            for name, value in place.items()
        )
        for place in places
    )


def protocol_rows(fit: Fit) -> list[dict[str, str]]:
    """How it was trained, a row a stage, with the baseline's stages first.

    Rounds of unlearning that went alike, one after the other, share a row.
    """
    chain = [fit] if fit.before is None else [fit.before, fit]
    rows: list[dict[str, str]] = []
    for part in chain:
        if part.status.code == "kept":
            continue
        name = "unlearning" if part is fit and fit.before is not None else "training"
        alike = lambda stage: (stage[0], str(stage[2]))  # noqa: E731
        for _, group in itertools.groupby(_stages(part), alike):
            stages = list(group)
            kind, _, settings = stages[0]
            told = [f"{k} {_told(v)}" for k, v in settings.items()]
            if len(stages) > 1 and not settings:
                told = [f"in {len(stages)} rounds"]
            for length in [sum(s[1] for s in stages)] if not settings else [s[1] for s in stages]:
                rows.append({
                    "fit": name, "kind": {"adam": "Adam", "lbfgs": "L-BFGS"}.get(kind, kind),
                    "length": f"{length:,}", "settings": ", ".join(told),
                })  # fmt: skip
    return rows


def _stages(part: Fit) -> list[tuple[str, int, dict[str, Any]]]:
    """Kind, epochs and settings of every stage that was run.

    Unlearning goes in rounds, of which the protocol tells the last; the history has them all.
    """
    told = list(part.protocol.stages)
    settings = [{k: v for k, v in vars(stage).items() if _telling(k, v)} for stage in told]
    begun = part.history.stages
    earlier = len(begun) - len(told)
    if earlier <= 0 or [stage.kind for stage in told] != [kind for kind, _ in begun[earlier:]]:
        return [(s.kind, s.length, about) for s, about in zip(told, settings, strict=True)]
    ends = [*(start for _, start in begun[1:]), len(part.history)]
    return [
        (kind, end - start, settings[place - earlier] if place >= earlier else {})
        for place, ((kind, start), end) in enumerate(zip(begun, ends, strict=True))
    ]


def _telling(name: str, value: Any) -> bool:
    quiet = ("epochs", "iterations", "betas", "history", "tolerance", "kind")
    usual: tuple[Any, ...] = (None, False, 0.0, {}, "constant", ("data", "equations", "conditions"))
    return name not in quiet and value not in usual


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{k}={_told(v)}" for k, v in value.items())
    if isinstance(value, (tuple, list)):
        return " + ".join(map(str, value))
    if isinstance(value, bool):
        return "yes"
    return number(value) if isinstance(value, float) else str(value)


def provenance(fit: Fit) -> list[tuple[str, str]]:
    """Where the result came from, as pairs of a label and a text."""
    network = fit.protocol.architecture
    rows = [
        ("problem", f"{fit.problem.name}, fingerprint {fit.problem.fingerprint}"),
        ("method", f"{fit.method}, recipe {fit.recipe}"),
        ("network", f"{network.kind}, {network.depth} hidden layers of {network.width}, "
         f"{network.activation}; {fit.neurons_left} hidden neurons left"),
        ("seed", str(fit.seed)),
        ("precision", fit.precision),
        ("seconds", _seconds(fit)),
        ("versions", f"unpinn {fit.versions.unpinn}, JAX {fit.versions.jax}, "
         f"Python {fit.versions.python}"),
        ("machine", f"{fit.versions.machine}, {fit.versions.threads} threads"),
    ]  # fmt: skip
    if "file" in fit.problem.source:
        told = f"{fit.problem.source['file']}, sha256 {fit.problem.source.get('sha256', '')}"
        rows.insert(1, ("problem file", told))
    if fit.observations is not None:
        rows.insert(2, ("readings", f"{len(fit.observations):,}, fingerprint "
                        f"{fit.observations.fingerprint}"))  # fmt: skip
    return rows


def _seconds(fit: Fit) -> str:
    own = float(fit.seconds.get("total", 0.0))
    if fit.before is None or fit.status.code == "kept":
        return f"{own:.0f}"
    earlier = float(fit.before.seconds.get("total", 0.0))
    return f"{earlier:.0f} for training, {own:.0f} for unlearning"


def shares(fit: Fit) -> dict[str, Any]:
    """How many readings are suspect, in numbers."""
    count = 0 if fit.observations is None else len(fit.observations)
    suspect = 0 if fit.partition is None else int(np.sum(fit.partition.suspect))
    return {"count": count, "suspect": suspect, "share": suspect / count if count else 0.0}
