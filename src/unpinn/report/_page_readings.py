"""What the page says of the readings, and the rows that it shows without a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unpinn.report._facts import number, shares, with_unit
from unpinn.report._suspects import sensors_table, suspects_table
from unpinn.training import Fit

_ROWS_WITHOUT_SCRIPT = 25
_MOST_SENSORS = 200


def readings_context(fit: Fit) -> dict[str, Any]:
    if fit.observations is None:
        return {"readings": False, "judged": False}
    reading = fit.details.get("reading")
    reading = reading if isinstance(reading, Mapping) else {}
    partition = fit.partition
    text = "Nobody judged these readings yet." if partition is None else (
        f"{partition.rule[:1].upper()}{partition.rule[1:]}."
    )  # fmt: skip
    table = suspects_table(fit, only_suspects=bool(shares(fit)["suspect"]))
    columns = _columns(fit)
    return {
        "readings": True,
        "judged": partition is not None,
        "partition_text": text,
        "reading_lines": [str(line) for line in reading.get("lines", [])],
        "reading_source": str(reading.get("source", "the file")),
        **_sensors_context(fit),
        "table_caption": "The worst first. A reading's number is its row among the readings.",
        "table_columns": columns,
        "table_rows": [
            [column["text"](row) for column in columns]
            for _, row in table.head(_ROWS_WITHOUT_SCRIPT).iterrows()
        ],
    }


def _columns(fit: Fit) -> list[dict[str, Any]]:
    """Labels of the table of readings, and how each cell is told; the page's script knows both."""
    assert fit.observations is not None

    def numeric(key: str, label: str, digits: int = 4) -> dict[str, Any]:
        return {"label": label, "number": True, "text": lambda row: number(row[key], digits)}

    columns: list[dict[str, Any]] = [
        {"label": "reading", "number": True, "text": lambda row: str(row["reading"])}
    ]
    if fit.observations.sensor is not None:
        columns.append({"label": "sensor", "number": False, "text": lambda row: row["sensor"]})
    columns += [numeric(name, with_unit(fit.problem, name)) for name in fit.problem.coordinates]
    for name in fit.observations.quantities:
        columns.append(numeric(name, with_unit(fit.problem, name)))
        columns.append(numeric(f"{name}_predicted", f"{name} predicted"))
    columns += [numeric("misfit", "misfit", 3), numeric("score", "score", 3)]
    if fit.partition is not None:
        if fit.partition.posterior is not None:
            columns.append({
                "label": "probably bad", "number": True,
                "text": lambda row: f"{100 * row['posterior']:.1f} %",
            })  # fmt: skip
        columns.append({
            "label": "verdict", "number": False,
            "text": lambda row: "retained" if row["retained"] else "suspect",
        })  # fmt: skip
    return columns


def _sensors_context(fit: Fit) -> dict[str, Any]:
    if fit.observations is None or fit.observations.sensor is None:
        return {"sensors": [], "sensor_columns": [], "sensors_caption": ""}
    table = sensors_table(fit).head(_MOST_SENSORS)
    names = list(table.columns[4:])
    rows = [
        {
            "sensor": row["sensor"] or "(unnamed)",
            "readings": f"{row['readings']:,}",
            "suspect": f"{row['suspect']:,}",
            "share": f"{row['share']:.0%}",
            "width": round(100 * row["share"], 1),
            "numbers": [number(row[name], 3) for name in names],
        }
        for _, row in table.iterrows()
    ]
    return {
        "sensors": rows,
        "sensor_columns": [name.replace("_", " ") for name in names],
        "sensors_caption": "Bias is the median of prediction minus reading, typical misfit the "
        "median of its size.",
    }
