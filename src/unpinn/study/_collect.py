"""From a store to records: one for each cell and seed of each table."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpinn._files import plain, write_bytes
from unpinn.study._graph import Graph
from unpinn.study._plan import Cell, Plan
from unpinn.study._store import Store

if TYPE_CHECKING:
    import pandas

MISSING = "missing"
# What main.json has of every run, whatever became of it.
_KEYS = (
    "problem", "noise", "method", "recipe", "seed", "budget", "quantity", "l2re", "state_l2re",
    "seconds", "neurons_left", "detection_auc", "status",
)  # fmt: skip


def collect(graph: Graph, store: Store, budget: str) -> list[dict[str, Any]]:
    """One record for each cell and seed, with what the run achieved.

    A run that failed has the status "failed" and its reason, one that was not run yet "missing".
    """
    plans = {id(table): plan for plan, table in graph.tables}
    kept: dict[str, dict[str, Any]] = {}
    records = []
    for cell, address in graph.cells:
        if address not in kept:
            kept[address] = _result(store, address)
        labels = _labels(plans[id(cell.table)], cell, budget)
        records.append(dict.fromkeys(_KEYS) | kept[address] | labels | {"address": address})
    return records


def main_records(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records of main tables that have ended, each run once: what main.json holds."""
    found: dict[tuple, dict[str, Any]] = {}
    for record in records:
        if not record["main"] or record["status"] == MISSING:
            continue
        # Runs that do not unlearn are the same under any recipe, but are named by theirs.
        key = (record["address"], record["recipe"], record["noise"])
        found.setdefault(key, plain(record))
    return list(found.values())


def frame(records: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """Records as a table: a column for each number, with dots where they are nested."""
    import pandas

    return pandas.DataFrame([_flat(record) for record in records])


def write_parquet(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """The table as a Parquet file."""
    buffer = io.BytesIO()
    frame(records).to_parquet(buffer, index=False)
    write_bytes(path, buffer.getvalue())


def _result(store: Store, address: str) -> dict[str, Any]:
    record = store.record(address)
    if record is not None:
        return record
    failure = store.failure(address)
    if failure is not None:
        return {"status": "failed", "reason": failure["reason"]}
    return {"status": MISSING, "reason": "not run yet"}


def _labels(plan: Plan, cell: Cell, budget: str) -> dict[str, Any]:
    """What a cell is called: a run may fill several, under different names."""
    asked = cell.run.configuration
    return {
        "study": plan.name,
        "table": cell.table.name,
        "main": cell.table.main,
        "problem": cell.problem.label,
        "column": cell.method.label,
        "variant": cell.variant.label,
        "x": cell.variant.x,
        "method": asked.method,
        "recipe": asked.recipe,
        "protocol": asked.protocol,
        "preset": None if asked.is_file else asked.preset,
        "noise": asked.noise_name,
        "noise_settings": dict(asked.noise),
        "seed": cell.seed,
        "budget": budget,
    }


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            # Settings are words about a run, not numbers of it.
            if name in ("options", "noise_settings", "unlearning", "network"):
                row[f"{prefix}{name}"] = json.dumps(plain(value), sort_keys=True)
            else:
                row |= _flat(value, f"{prefix}{name}.")
        else:
            row[f"{prefix}{name}"] = json.dumps(value) if isinstance(value, list) else value
    return row
