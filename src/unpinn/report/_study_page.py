"""A study as one HTML file that fetches nothing: what was run, every table, every picture."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from unpinn._version import __version__
from unpinn.study._render import grid, number, printed, spread, times
from unpinn.study._tables import Sheet, Value

_FILES = ("page.css", "study.css")


@dataclass(frozen=True)
class Picture:
    """A picture for the page.

    Arguments:
        name: of its file.
        caption: what it shows.
        image: PNG.
    """

    name: str
    caption: str
    image: bytes

    @property
    def address(self) -> str:
        """What an image element can show."""
        return "data:image/png;base64," + base64.b64encode(self.image).decode()


@dataclass(frozen=True)
class Part:
    """A table on the page.

    Arguments:
        name: of the table.
        title: its heading.
        about: a sentence on it.
        sheets: its quantities.
        pictures: its pictures.
    """

    name: str
    title: str
    about: str
    sheets: tuple[Sheet, ...]
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class StudyPage:
    """Everything that the page says.

    Arguments:
        title: of the study or studies.
        about: what for.
        budget: "quick", "short" or "paper".
        share: of the epochs at that budget.
        counts: runs that are finished, diverged, failed and missing.
        provenance: name and text, in order.
        warnings: what a reader has to know first.
        parts: the tables.
        failures: run and reason.
    """

    title: str
    about: str
    budget: str
    share: float
    counts: Mapping[str, int]
    provenance: Sequence[tuple[str, str]]
    warnings: Sequence[str]
    parts: Sequence[Part]
    failures: Sequence[tuple[str, str]]


def study_page(page: StudyPage) -> str:
    """The page's text; every word from data or plans is escaped."""
    import jinja2

    folder = resources.files("unpinn.report") / "page"
    style = "\n".join((folder / name).read_text("utf-8") for name in _FILES)
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((folder / "study.html").read_text("utf-8"))
    # Style sheets are ours and hold nothing of anybody's data; escaping would break them.
    return template.render(
        page=page,
        style=jinja2.utils.markupsafe.Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        version=__version__,
        quick=page.budget != "paper",
        tables=[[_table(sheet) for sheet in part.sheets] for part in page.parts],
    )


def _table(sheet: Sheet) -> dict[str, Any]:
    corner, heads, rows = grid(sheet)
    return {
        "title": sheet.title,
        "corner": corner,
        "heads": heads,
        "rows": [(name, [_cell(value) for value in values]) for name, values in rows],
        "notes": sheet.notes,
    }


def _cell(value: Value) -> dict[str, Any]:
    kind = "best" if value.best else ("limit" if value.limit else "")
    if value.mean is None:
        kind = "lost" if value.failed else "none"
    singles = ", ".join(number(v) for v in value.values)
    return {
        "text": spread(value),
        "kind": kind,
        "remark": value.remark,
        "printed": printed(value) if value.ratio is None else printed(value).partition(" (×")[0],
        "ratio": "" if value.ratio is None else times(value.ratio),
        "verdict": _verdict(value),
        "notes": value.notes,
        "hint": f"seeds: {singles}" if singles else "",
    }


def _verdict(value: Value) -> str:
    """Whether we are better than the paper, worse, or within a tenth or a deviation of it."""
    if value.ratio is None or value.printed is None or value.mean is None:
        return ""
    spread_of = max(value.deviation or 0.0, value.printed[1] or 0.0)
    if abs(value.mean - value.printed[0]) <= max(spread_of, 0.1 * value.printed[0]):
        return "same"
    return "better" if value.ratio < 1 else "worse"
