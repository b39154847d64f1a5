"""Which runs a study needs, each once, and which of them others start from."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from unpinn._errors import UserError
from unpinn.runs import Posed
from unpinn.study._cost import cost_of
from unpinn.study._plan import DRAWN, Cell, Choice, Plan, Table, cells_of
from unpinn.study._run import Run, content_of, digest, needs_baseline
from unpinn.study._source import unknown


@dataclass(frozen=True, eq=False)
class Node:
    """A run in the graph.

    Arguments:
        address: of its content; equal runs of different tables are one node.
        run: its settings.
        content: what the address is a digest of.
        needs: the address of the run it starts from.
        epochs: of all stages, the longest part of its cost.
        seconds: that it will take on one core, as was measured once.
        label: what progress calls it.
    """

    address: str
    run: Run
    content: dict[str, Any]
    needs: str | None
    epochs: int
    seconds: float
    label: str


@dataclass(frozen=True, eq=False)
class Graph:
    """All runs of one or several studies, and the cells that they fill.

    Arguments:
        nodes: by address; a run stands after the one it needs.
        cells: every cell of every table, with the address of its run.
        tables: with the plan each belongs to.
    """

    nodes: dict[str, Node]
    cells: tuple[tuple[Cell, str], ...]
    tables: tuple[tuple[Plan, Table], ...]

    @property
    def shared(self) -> dict[str, list[str]]:
        """The runs that others start from, with those others."""
        found: dict[str, list[str]] = {}
        for node in self.nodes.values():
            if node.needs is not None:
                found.setdefault(node.needs, []).append(node.address)
        return found

    @property
    def drawn(self) -> set[str]:
        """The runs whose fields a report draws: the first seed of the main methods."""
        return {
            address for cell, address in self.cells
            if cell.table.figure == "fields"
            and cell.method.name in DRAWN
            and cell.seed == cell.table.seeds[0]
        }  # fmt: skip

    def labels(self, address: str) -> str:
        """A run in words."""
        return self.nodes[address].label


def graph_of(plans: Sequence[Plan], choice: Choice) -> Graph:
    """Everything that plans ask for, posed and checked; nothing is run.

    A setting that cannot work is refused here, with the file and line of it.
    """
    _check_choice(plans, choice)
    builder = _Builder()
    tables = []
    for plan in plans:
        for table in choice.of(plan):
            tables.append((plan, table))
            for cell in cells_of(table, choice.budget):
                builder.add(plan, cell)
    if not tables:
        raise UserError(f"nothing of {', '.join(p.name for p in plans)} is left to run")
    return Graph(builder.nodes, tuple(builder.cells), tuple(tables))


@dataclass(frozen=True, eq=False)
class _Builder:
    nodes: dict[str, Node] = field(default_factory=dict)
    cells: list[tuple[Cell, str]] = field(default_factory=list)
    known: dict[str, Posed] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    def add(self, plan: Plan, cell: Cell) -> None:
        try:
            node = self._node(cell)
        except UserError as error:
            number = [t.name for t in plan.tables].index(cell.table.name)
            quoted = re.findall(r"'([^']+)'", str(error))
            numbers = re.findall(r"(?<!\w)-?\d+\.?\d*", str(error))
            place = plan.source.at("table", number)
            raise place.mistake(str(error), *quoted, *numbers, cell.table.name) from None
        self.cells.append((cell, node.address))

    def _node(self, cell: Cell) -> Node:
        needs = None
        if needs_baseline(cell.run):
            needs = self._made(cell.run.baseline, f"{cell.problem.label} PINN, {cell.seed}").address
        words = f"{cell.problem.label} {cell.method.label}"
        # How to unlearn makes no difference to what does not.
        told = needs is not None or {*cell.variant.changes} - {"unlearning"}
        variant = f" {cell.variant.label}" if cell.variant.label and told else ""
        return self._made(cell.run, f"{words}{variant}, {cell.seed}", needs)

    def _made(self, run: Run, label: str, needs: str | None = None) -> Node:
        # Many cells start from one baseline, and posing it takes time.
        settings = json.dumps(run.to_dict(), sort_keys=True)
        if settings not in self.addresses:
            posed = run.posed(self.known)
            content = content_of(run, posed)
            address = self.addresses[settings] = digest(content)
            if address not in self.nodes:
                self.nodes[address] = Node(
                    address, run, content, needs, posed.protocol.epochs, cost_of(run, posed), label
                )
        return self.nodes[self.addresses[settings]]


def _check_choice(plans: Sequence[Plan], choice: Choice) -> None:
    """Refuse a name that no plan knows; with several plans each need not know all of them."""
    tables = [t for plan in plans for t in plan.tables]
    given = {
        "table": (choice.tables, [t.name for t in tables]),
        "problem": (choice.problems, [p.label for t in tables for p in t.problems]),
        "method": (choice.methods, [m.name for t in tables for m in t.methods]),
    }
    for what, (wanted, known) in given.items():
        for name in wanted:
            if name not in known:
                named = ", ".join(plan.name for plan in plans)
                raise UserError(f"in {named}, {unknown(what, name, dict.fromkeys(known))}")
