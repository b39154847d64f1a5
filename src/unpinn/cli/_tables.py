"""Records as a table in the terminal: a row a quantity, a column a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unpinn.cli._progress import display_name

Record = Mapping[str, Any]
Row = tuple[str, list[str]]


def comparison_rows(records: Sequence[Record]) -> list[Row]:
    """What is told about methods side by side; rows that say nothing are left out."""
    first = records[0]
    rows: list[Row] = []
    if first["quantity"] is not None:
        rows.append((f"error of {first['quantity']}", [_number(r["l2re"]) for r in records]))
        if any(r["state_l2re"] != r["l2re"] for r in records):
            rows.append(("error of the state", [_number(r["state_l2re"]) for r in records]))
    rows += [(name, [_unknown(r, name) for r in records]) for name in first["unknowns"]]
    rows.append(("misfit of all readings", [_number(r["misfit"]) for r in records]))
    rows.append(("suspects found", [_suspects(r) for r in records]))
    rows.append(("noise found", [_noise(r) for r in records]))
    rows.append(("bad readings told apart (AUC)", [_number(r["detection_auc"]) for r in records]))
    rows.append(("neurons left", [str(r["neurons_left"]) for r in records]))
    rows.append(("time", [f"{r['seconds']:.0f} s" for r in records]))
    if any(r["status"] != "finished" for r in records):
        rows.append(("ended", [r["status"] for r in records]))
    return [(label, cells) for label, cells in rows if any(cell != "-" for cell in cells)]


def print_comparison(records: Sequence[Record], title: str) -> None:
    """Print the table; plain where the output is not a terminal."""
    names = [display_name(record["method"]) for record in records]
    print_table(["", *names], [[label, *cells] for label, cells in comparison_rows(records)], title)


def print_methods(records: Sequence[Record], title: str) -> None:
    """Print many methods: a row each."""
    labels = [label for label, _ in comparison_rows(records)]
    columns = [cells for _, cells in comparison_rows(records)]
    body = [
        [display_name(record["method"]), *(cells[number] for cells in columns)]
        for number, record in enumerate(records)
    ]
    print_table(["method", *labels], body, title)


def print_table(
    head: Sequence[str], body: Sequence[Sequence[str]], title: str = "", words: int = 1
) -> None:
    """Print rows under a head.

    Arguments:
        head: what the columns are called.
        body: rows of as many cells.
        title: a line above.
        words: how many of the first columns hold words, which begin at the left.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=_box(console), title_justify="left", pad_edge=False)
    for number, name in enumerate(head):
        table.add_column(Text(name), justify="left" if number < words else "right", overflow="fold")
    for row in body:
        table.add_row(*(Text(str(cell)) for cell in row))
    if title:
        console.print(Text(title), soft_wrap=True)
    if console.is_terminal:
        console.print(table)
    else:
        # Nothing is known of the width of what is no terminal, and a pipe has none.
        wide = Console(width=240)
        wide.print(table)


def _box(console: Any) -> Any:
    from rich import box

    return box.SIMPLE_HEAD if console.is_terminal and not console.legacy_windows else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _unknown(record: Record, name: str) -> str:
    value = record["unknowns"].get(name)
    if value is None:
        return "-"
    errors = record.get("unknown_errors", {}).get(name)
    if not errors:
        return f"{value:.5g}"
    return f"{value:.5g} (true {errors['truth']:g})"


def _suspects(record: Record) -> str:
    if record["suspects"] is None:
        return "-"
    text = str(record["suspects"])
    if record.get("truly_bad") is None:
        return text
    precision, recall = _number(record["precision"]), _number(record["recall"])
    return f"{text} of {record['truly_bad']} bad (precision {precision}, recall {recall})"


def _noise(record: Record) -> str:
    noise = record["estimated_noise"]
    if noise is None or None in noise.values():
        return "-"
    if noise["components"] == 1:
        return f"one kind, {noise['low']:.3g}"
    return f"{noise['low']:.3g}, and {noise['high']:.3g} in {noise['share']:.0%}"
