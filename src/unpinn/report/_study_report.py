"""A study's report: a page, tables for papers and programs, and pictures, in one directory.

DIRECTORY/
index.html         everything on one self-contained page
README.md          the tables and pictures in Markdown
main.json          the records of the main tables, for programs
records.parquet    all records of all tables
tables/*.tex       LaTeX
figures/*.png
provenance.json    what this was made from, and which files belong to it
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn._files import read_json, write_bytes, write_json, write_text
from unpinn.report._study_figures import study_figures
from unpinn.report._study_page import Part, Picture, StudyPage, study_page
from unpinn.study._collect import MISSING, collect, main_records, write_parquet
from unpinn.study._graph import Graph
from unpinn.study._plan import Plan
from unpinn.study._progress import duration
from unpinn.study._render import latex, markdown
from unpinn.study._store import Store, now
from unpinn.study._tables import sheets_of
from unpinn.training import BUDGETS

_MARK = "provenance.json"
Record = Mapping[str, Any]


def write_study_report(
    graph: Graph, store: Store, directory: Any, *, budget: str, command: str = ""
) -> Path:
    """Write what a store holds of some studies; gives the path of the page.

    Runs that are missing are shown as such, so that a report can be made at any time.

    Arguments:
        graph: the studies.
        store: where their runs are.
        directory: where to; only files of an earlier report are replaced.
        budget: at which the studies were run.
        command: that ran them.
    """
    directory = Path(directory)
    before = check_study_report(graph, directory)
    records = collect(graph, store, budget)
    parts = _parts(graph, records, store)
    page = _page(graph, records, parts, budget, command)
    files = _write_tables(directory, parts)
    files += _write_pictures(directory, parts)
    write_text(directory / "README.md", _readme(page))
    write_text(directory / "index.html", study_page(page))
    write_json(directory / "main.json", main_records(records))
    write_parquet(directory / "records.parquet", records)
    files += ["README.md", "index.html", "main.json", "records.parquet", _MARK]
    write_json(directory / _MARK, _provenance(page, files))
    for name in {*before} - {*files}:
        with contextlib.suppress(OSError):
            (directory / name).unlink()
    return directory / "index.html"


def check_study_report(graph: Graph, directory: Path) -> list[str]:
    """Refuse what no report could be made of, or a directory that none can be written into.

    To be asked before hours of work, and not after them; gives the files of an earlier report.
    """
    _check_names(graph)
    return _claim(directory)


def _claim(directory: Path) -> list[str]:
    """The files of an earlier report; refused where there are files of any other kind."""
    if directory.exists() and not directory.is_dir():
        raise UserError(f"{directory} is a file; choose a directory for the report")
    if not directory.is_dir() or not any(directory.iterdir()):
        return []
    mark = directory / _MARK
    content = read_json(mark) if mark.exists() else None
    if not isinstance(content, dict) or not isinstance(content.get("files"), list):
        raise UserError(
            f"{directory} holds other files; choose an empty directory for the report, or that of "
            "an earlier one"
        )
    # Only names that a report can have: the file may have been tampered with.
    names = [Path(str(name)) for name in content["files"]]
    return [str(n) for n in names if not n.is_absolute() and ".." not in n.parts]


def _check_names(graph: Graph) -> None:
    seen: dict[str, Plan] = {}
    for plan, table in graph.tables:
        if table.name in seen:
            raise UserError(
                f"{seen[table.name].name} and {plan.name} both have a table {table.name!r}; give "
                "them reports of their own"
            )
        seen[table.name] = plan


def _parts(graph: Graph, records: Sequence[Record], store: Store) -> list[Part]:
    parts = []
    for plan, table in graph.tables:
        sheets = [sheet for sheet in sheets_of(plan, table, records) if not sheet.empty]
        pictures = []
        for name, caption, figure in study_figures(plan, table, records, store):
            buffer = io.BytesIO()
            # Without the version of the drawing library, the same numbers give the same bytes.
            figure.savefig(buffer, format="png", metadata={"Software": None})
            pictures.append(Picture(name, caption, buffer.getvalue()))
        if sheets or pictures:
            parts.append(Part(table.name, table.title, table.about, tuple(sheets), tuple(pictures)))
    return parts


def _page(
    graph: Graph, records: Sequence[Record], parts: Sequence[Part], budget: str, command: str
) -> StudyPage:
    plans = list({id(plan): plan for plan, _ in graph.tables}.values())
    runs = {r["address"]: r for r in records}
    counts = Counter(str(r["status"]) for r in runs.values())
    failures = [
        (graph.labels(address), str(record["reason"]))
        for address, record in runs.items()
        if record["status"] == "failed"
    ]
    order = ("finished", "kept", "diverged", "failed", MISSING)
    told = {"kept": "kept their baseline", MISSING: "not run yet"}
    return StudyPage(
        " · ".join(plan.title for plan in plans),
        " ".join(plan.about for plan in plans),
        budget,
        BUDGETS[budget],
        {told.get(name, name): counts[name] for name in order},
        _facts(graph, list(runs.values()), budget, command),
        _warnings(list(runs.values()), counts),
        parts,
        failures,
    )


def _facts(
    graph: Graph, runs: Sequence[Record], budget: str, command: str
) -> list[tuple[str, str]]:
    plans = list({id(plan): plan for plan, _ in graph.tables}.values())
    environments = [r["environment"] for r in runs if isinstance(r.get("environment"), Mapping)]
    times = sorted(e["time"] for e in environments)
    computed = sum(float(r.get("seconds") or 0.0) for r in runs)
    seeds = sorted({r for _, table in graph.tables for r in table.seeds})
    facts = [
        ("studies", ", ".join(f"{plan.name} ({Path(plan.source.name).name})" for plan in plans)),
        ("command", command),
        ("budget", f"{budget}: {100 * BUDGETS[budget]:g} % of every training's epochs"),
        ("seeds", ", ".join(map(str, seeds))),
        ("runs", f"{len(environments)} of {len(runs)}, {duration(computed)} of training in all"),
        ("run between", f"{times[0]} and {times[-1]}" if times else ""),
        ("unpinn", _several(f"{e['unpinn']} (sources {e['sources']})" for e in environments)),
        ("Python", _several(e["python"] for e in environments)),
        ("libraries", _several(_libraries(e) for e in environments)),
        ("machine", _several(e["machine"] for e in environments)),
        ("cores a run", _several(str(e["cores"]) for e in environments)),
        ("device", _several(e["device"] for e in environments)),
        ("report written", now()),
    ]
    return [(name, text) for name, text in facts if text]


def _warnings(runs: Sequence[Record], counts: Counter) -> list[str]:
    environments = [r["environment"] for r in runs if isinstance(r.get("environment"), Mapping)]
    found = []
    if counts[MISSING]:
        found.append(
            f"{counts[MISSING]} of {len(runs)} runs are missing; means are over those that are "
            "there."
        )
    if counts["failed"]:
        found.append(f"{counts['failed']} runs failed; the reasons are at the end.")
    if counts["diverged"]:
        found.append(
            f"{counts['diverged']} runs diverged; their last good state is in the means, and every "
            "such cell says so."
        )
    states = {e["sources"] for e in environments}
    if len(states) > 1:
        found.append(
            f"The runs were computed by {len(states)} states of the package's sources, all of the "
            "same declared numerics."
        )
    if len({(e["machine"], e["cores"]) for e in environments}) > 1:
        found.append("The runs were not all computed on the same machine and as many cores, so "
                     "their times do not compare.")  # fmt: skip
    return found


def _write_tables(directory: Path, parts: Sequence[Part]) -> list[str]:
    files = []
    for part in parts:
        for sheet in part.sheets:
            files.append(f"tables/{sheet.name}.tex")
            write_text(directory / files[-1], latex(sheet))
    return files


def _write_pictures(directory: Path, parts: Sequence[Part]) -> list[str]:
    files = []
    for part in parts:
        for picture in part.pictures:
            files.append(f"figures/{picture.name}.png")
            write_bytes(directory / files[-1], picture.image)
    return files


def _readme(page: StudyPage) -> str:
    lines = [f"# {page.title}", "", page.about, ""]
    if page.budget != "paper":
        lines += [
            f"**Budget “{page.budget}”: {100 * page.share:g} % of every training's epochs. These "
            "numbers show that everything works; they are not results.**", "",
        ]  # fmt: skip
    lines += [f"- {warning}" for warning in page.warnings]
    counted = ", ".join(f"{count} {name}" for name, count in page.counts.items() if count)
    lines += [
        "", f"Runs: {counted}. Mean ± standard deviation over seeds; the best of a row in bold, "
        "methods that were told the true noise slanted. “paper” is what the paper prints, and in "
        "brackets ours over it.", "",
    ]  # fmt: skip
    for part in page.parts:
        lines += [f"## {part.title}", "", *([part.about, ""] if part.about else [])]
        for sheet in part.sheets:
            lines += [markdown(sheet), ""]
        for picture in part.pictures:
            lines += [f"![{picture.caption}](figures/{picture.name}.png)", ""]
    if page.failures:
        lines += ["## Failures", "", *(f"- {run}: {reason}" for run, reason in page.failures), ""]
    lines += ["## Provenance", "", *(f"- {name}: {text}" for name, text in page.provenance)]
    return "\n".join(lines) + "\n"


def _provenance(page: StudyPage, files: Sequence[str]) -> dict[str, Any]:
    return {**dict(page.provenance), "counts": dict(page.counts), "files": sorted(files)}


def _several(texts: Any) -> str:
    """Different texts, the commonest first."""
    return "; ".join(text for text, _ in Counter(texts).most_common())


def _libraries(environment: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in environment["libraries"].items())
