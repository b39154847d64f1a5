"""The numbers that the paper prints, to set beside ours."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

PRINTED_METHODS = {
    "pinn": "PINN", "ppinn": "P-PINN", "bpinn": "B-PINN", "dpinn": "D-PINN", "ft": "FT",
    "rt": "RT",
}  # fmt: skip
"""What the paper calls a method."""

# The paper's tables were computed with the forced heat equation, not the one in its text.
_PROBLEMS = {"heat-forced": "heat", "heat": None}


@dataclass(frozen=True)
class Printed:
    """All printed numbers.

    Arguments:
        numbers: mean and standard deviation (None where not printed), by table, metric, problem,
            method and setting.
    """

    numbers: Mapping[tuple[str, str, str, str, str], tuple[float, float | None]]

    @property
    def places(self) -> tuple[str, ...]:
        """What a study file can point to: tables, and their metrics where there are several."""
        found: dict[str, None] = {}
        for table, metric, *_ in self.numbers:
            found[table] = None
            found[f"{table}/{metric}"] = None
        return tuple(found)

    def find(
        self, place: str, problem: str, method: str | None, setting: str | None = None
    ) -> tuple[float, float | None] | None:
        """A printed mean and deviation.

        Arguments:
            place: "TABLE", or "TABLE/metric" for a table of several metrics.
            problem: as the paper calls it.
            method: as the paper calls it.
            setting: the variant, as the paper calls it.

        >>> printed_numbers().find("L2RE", "poisson", "PINN")
        (0.259, 0.0134)
        """
        table, _, metric = place.partition("/")
        for (there, measure, row, column, variant), number in self.numbers.items():
            if (there, row, column, variant) == (table, problem, method, setting or "") and (
                not metric or metric == measure
            ):
                return number
        return None

    @staticmethod
    def problem(name: str) -> str | None:
        """What the paper's tables call a problem; None where they have none.

        >>> Printed.problem("heat-forced")
        'heat'
        """
        return _PROBLEMS.get(name, name)


@cache
def printed_numbers() -> Printed:
    """The paper's tables."""
    text = (resources.files("unpinn.study") / "paper_tables.csv").read_text("utf-8")
    numbers = {}
    for row in csv.DictReader(text.splitlines()):
        key = (row["table"], row["metric"], row["problem"], row["method"], row["setting"])
        numbers[key] = float(row["mean"]), float(row["std"]) if row["std"] else None
    return Printed(numbers)
