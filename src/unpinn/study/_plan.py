"""What a study is: tables, each a product of problems, methods, variants and seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unpinn._errors import UserError
from unpinn.runs import Configuration
from unpinn.study._run import Run
from unpinn.study._source import Source, unknown
from unpinn.training import BUDGETS

# Seeds of a quick look, unless others are asked for: one is enough to see that all works.
QUICK_SEEDS = 1
# What a quick look shortens beside epochs: the length of a chain is not counted in epochs, and
# would otherwise take most of the time.
QUICK_OPTIONS: Mapping[str, Mapping[str, Any]] = {"bpinn": {"burn_in": 4, "samples": 10}}
SETTINGS = (
    "protocol", "preset", "recipe", "epochs", "noise", "unlearning", "network", "options",
)  # fmt: skip
# Of a table's methods the fields of these are drawn, so that a picture stays readable.
DRAWN = ("pinn", "ppinn", "oracle")
_MAPPINGS = ("noise", "unlearning", "network", "options")


@dataclass(frozen=True)
class Entry:
    """A problem, a method or a variant of a table.

    Arguments:
        name: the problem's or method's; empty for a variant.
        label: what tables call it.
        changes: settings that it brings.
        printed: what the paper calls it, if it has printed numbers.
        x: a variant's place along a curve.
        data: the readings' file, for a problem file.
    """

    name: str
    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    printed: str | None = None
    x: float | None = None
    data: str | None = None


@dataclass(frozen=True)
class Note:
    """A remark on some cells of the paper's tables; an empty tuple stands for all.

    Arguments:
        text: the remark.
        tables: which tables,
        quantities: quantities,
        problems: problems,
        methods: and methods it is about.
    """

    text: str
    tables: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()

    def about(self, table: str, quantity: str, problem: str, methods: Sequence[str]) -> bool:
        """Whether it is about this cell, whose method may be called in several ways."""
        pairs = (
            (self.tables, [table]), (self.quantities, [quantity]), (self.problems, [problem]),
            (self.methods, methods),
        )  # fmt: skip
        return all(not chosen or {*chosen}.intersection(ours) for chosen, ours in pairs)


@dataclass(frozen=True)
class Table:
    """One table of a study.

    Arguments:
        name: of its files.
        title: its caption.
        about: what it shows.
        problems: its rows.
        methods: its columns,
        variants: each in all of these.
        seeds: of which mean and deviation are taken.
        quantities: what is tabulated, one table each.
        changes: settings of all its runs.
        printed: for a quantity, where the paper prints it: "TABLE" or "TABLE/metric".
        figure: "fields", "curves", or none.
        axis: what the variants' numbers are, for curves.
        budgets: at which budgets it is made.
        main: whether its records are part of main.json.
    """

    name: str
    title: str
    about: str
    problems: tuple[Entry, ...]
    methods: tuple[Entry, ...]
    variants: tuple[Entry, ...]
    seeds: tuple[int, ...]
    quantities: tuple[str, ...]
    changes: Mapping[str, Any]
    printed: Mapping[str, str]
    figure: str | None
    axis: str
    budgets: tuple[str, ...]
    main: bool


@dataclass(frozen=True)
class Plan:
    """A study, as its file states it.

    Arguments:
        name: of the file, without its ending.
        title: of the report.
        about: what it is for.
        tables: in order.
        notes: on the paper's numbers.
        source: the file's text.
    """

    name: str
    title: str
    about: str
    tables: tuple[Table, ...]
    notes: tuple[Note, ...]
    source: Source


@dataclass(frozen=True)
class Choice:
    """Which part of a plan is wanted; an empty tuple stands for all that it states.

    Arguments:
        budget: "quick", "short" or "paper": the share of every stage's epochs.
        seeds: instead of the plan's.
        problems: only these,
        methods: and these,
        tables: and these.
    """

    budget: str = "paper"
    seeds: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    def __post_init__(self):
        if self.budget not in BUDGETS:
            raise UserError(unknown("budget", self.budget, BUDGETS))
        for seed in self.seeds:
            if seed < 0:
                raise UserError(f"a seed must be a whole number of zero or more, not {seed}")

    def of(self, plan: Plan) -> tuple[Table, ...]:
        """The plan's tables, reduced to what is wanted."""
        tables = [
            table for table in plan.tables
            if (table.name in self.tables if self.tables else self.budget in table.budgets)
        ]  # fmt: skip
        reduced = (self._reduced(table) for table in tables)
        return tuple(table for table in reduced if table.problems and table.methods)

    def _reduced(self, table: Table) -> Table:
        usual = table.seeds[:QUICK_SEEDS] if self.budget == "quick" else table.seeds
        return replace(
            table,
            problems=tuple(p for p in table.problems if self._takes(p.label, self.problems)),
            methods=tuple(m for m in table.methods if self._takes(m.name, self.methods)),
            seeds=self.seeds or usual,
        )

    @staticmethod
    def _takes(name: str, wanted: Sequence[str]) -> bool:
        return not wanted or name in wanted


@dataclass(frozen=True, eq=False)
class Cell:
    """One seed of one cell of a table, and the run that fills it.

    Arguments:
        table: which table.
        problem: the row.
        method: the column.
        variant: the column within the column.
        seed: one of those averaged over.
        run: its settings.
    """

    table: Table
    problem: Entry
    method: Entry
    variant: Entry
    seed: int
    run: Run


def cells_of(table: Table, budget: str) -> Iterator[Cell]:
    """All cells of a table, the first seed of everything first."""
    for seed in table.seeds:
        for problem in table.problems:
            for method in table.methods:
                for variant in table.variants:
                    changes = merged(
                        table.changes, problem.changes, method.changes, variant.changes
                    )
                    run = make_run(problem, method.name, seed, budget, changes)
                    yield Cell(table, problem, method, variant, seed, run)


def merged(*changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings on top of settings: the last word counts, name by name.

    >>> merged({"noise": {"high": 1.0}}, {"noise": {"low": 0.1}, "recipe": "paper"})
    {'noise': {'high': 1.0, 'low': 0.1}, 'recipe': 'paper'}
    """
    result: dict[str, Any] = {}
    for change in changes:
        for name, value in change.items():
            result[name] = {**result.get(name, {}), **value} if name in _MAPPINGS else value
    return result


def make_run(
    problem: Entry, method: str, seed: int, budget: str, changes: Mapping[str, Any]
) -> Run:
    """A run from the settings of a cell; a budget is a share of the epochs that are asked for."""
    single = {n: changes[n] for n in ("protocol", "preset", "recipe") if n in changes}
    shorter = QUICK_OPTIONS.get(method, {}) if budget == "quick" else {}
    if "epochs" in changes:
        single["epochs"] = max(1, round(changes["epochs"] * BUDGETS[budget]))
        budget = "paper"
    options = {**shorter, **changes.get("options", {})}
    configuration = Configuration(
        problem.name, method, **single, seed=seed, budget=budget,
        options=options, noise=changes.get("noise", {}), data=problem.data,
    )  # fmt: skip
    return Run(configuration, changes.get("unlearning", {}), changes.get("network", {}))
