"""The unknown numbers as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn._files import write_json
from unpinn.training import Fit


def unknowns_record(
    fit: Fit, intervals: Mapping[str, tuple[float, float]] | None = None, note: str = ""
) -> dict[str, Any]:
    """The unknown numbers with units, intervals and what led to them, in JSON's types.

    Arguments:
        fit: a fit.
        intervals: on the unknowns, where there are any.
        note: how the intervals were made.
    """
    units, intervals = fit.problem.source.get("units", {}), intervals or {}
    earlier = None if fit.before is None else fit.before.unknowns
    return {
        "problem": fit.problem.name,
        "method": fit.method,
        "recipe": fit.recipe,
        "seed": fit.seed,
        "status": {"code": fit.status.code, "reason": fit.status.reason},
        "intervals": note,
        "unknowns": {
            name: {
                "value": value,
                "unit": units.get(name),
                "interval": list(intervals[name]) if name in intervals else None,
                "before": None if earlier is None else earlier[name],
                "at_bound": _scalar(fit, name).at_bound(value),
            }
            for name, value in fit.unknowns.items()
        },
    }


def write_unknowns(
    fit: Fit,
    path: Any,
    intervals: Mapping[str, tuple[float, float]] | None = None,
    note: str = "",
    overwrite: bool = False,
) -> Path:
    """Write `unknowns_record` to a JSON file."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise UserError(f"{path} exists; choose another name, or pass overwrite=True")
    write_json(path, unknowns_record(fit, intervals, note))
    return path


def _scalar(fit: Fit, name: str) -> Any:
    return next(scalar for scalar in fit.problem.scalars if scalar.name == name)
