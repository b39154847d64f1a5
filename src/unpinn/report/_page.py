"""One fit as one HTML file that fetches nothing: what was asked, what was found, what to doubt."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn._files import plain, write_text
from unpinn._version import __version__
from unpinn.export import write_unknowns
from unpinn.report import _page_data as pack
from unpinn.report._facts import (
    Interval,
    UnknownRow,
    asked,
    number,
    protocol_rows,
    provenance,
    shares,
    unknown_rows,
)
from unpinn.report._field_grids import axes_of
from unpinn.report._intervals import intervals_of
from unpinn.report._page_readings import readings_context
from unpinn.report._suspects import write_sensors, write_suspects
from unpinn.report._unknown_fields import extremes_of
from unpinn.report._warnings import warnings_of
from unpinn.training import Fit

_LABELS = {"serious": "Serious", "caution": "Caution", "note": "Note"}


def write_page(
    fit: Fit,
    path: Any,
    *,
    overwrite: bool = False,
    intervals: Mapping[str, Interval] | None = None,
    before_intervals: Mapping[str, Interval] | None = None,
    level: float = 0.9,
    note: str | None = None,
) -> Path:
    """Write one self-contained HTML page about a fit.

    The file fetches nothing from anywhere, and every text from data or configuration is escaped.

    Arguments:
        fit: any fit: with or without readings, a partition, a baseline, members.
        path: where to; ends in .html.
        overwrite: whether a file of that name may be replaced.
        intervals: on the unknown numbers; computed unless told.
        before_intervals: on those of the baseline; computed unless told.
        level: of the intervals.
        note: how intervals that are told were made.
    """
    path = Path(path)
    if path.suffix not in (".html", ".htm"):
        raise UserError(f"{path} must end in .html, since a page is written there")
    if path.exists() and not overwrite:
        raise UserError(f"{path} exists; choose another name, or pass overwrite=True")
    write_text(path, page_text(fit, intervals, before_intervals, level, note))
    return path


def write_report(fit: Fit, directory: Any, *, overwrite: bool = False) -> Path:
    """Write everything that is handed on: the page, the tables of suspects, the unknowns.

    Gives the path of the page, `index.html`; beside it are `suspects.csv`, `suspects-by-sensor.csv`
    (where there are readings, and sensors) and `unknowns.json`.
    """
    directory = Path(directory)
    page, suspects, sensors, unknowns = (
        directory / name
        for name in ("index.html", "suspects.csv", "suspects-by-sensor.csv", "unknowns.json")
    )
    # All are looked at before the first is written, so that a refusal leaves nothing behind.
    there = [path for path in (page, suspects, sensors, unknowns) if path.exists()]
    if there and not overwrite:
        raise UserError(f"{there[0]} exists; choose another directory, or pass overwrite=True")
    found, note = intervals_of(fit)
    write_unknowns(fit, unknowns, found, note, overwrite=overwrite)
    if fit.observations is not None:
        write_suspects(fit, suspects)
        if fit.observations.sensor is not None:
            write_sensors(fit, sensors)
    return write_page(fit, page, overwrite=overwrite, intervals=found, note=note)


def page_text(
    fit: Fit,
    intervals: Mapping[str, Interval] | None = None,
    before_intervals: Mapping[str, Interval] | None = None,
    level: float = 0.9,
    note: str | None = None,
) -> str:
    """The page as text."""
    import jinja2
    from markupsafe import Markup

    if note is None:
        note = f"{level:.0%} intervals" if intervals else ""
    if intervals is None:
        intervals, note = intervals_of(fit, level)
    if before_intervals is None and fit.before is not None and fit.status.code != "kept":
        before_intervals, _ = intervals_of(fit.before, level)
    style, script = _asset("page.css"), _wrapped(_asset("fields.js") + _asset("readings.js"))
    data = _data(fit)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    rows = unknown_rows(fit, intervals, before_intervals)
    if fit.status.code == "kept":
        # The baseline itself: there is nothing to set beside it.
        rows = [replace(row, before=None) for row in rows]
    notices = warnings_of(fit, intervals)
    context = {
        "version": __version__,
        "style": Markup(style), "style_hash": _digest(style),
        "script": Markup(script), "script_hash": _digest(script),
        "data": Markup(_embedded(data)),
        "title": _title(fit), "eyebrow": _eyebrow(fit), "lead": _lead(fit),
        "summary": str(fit.problem.source.get("summary", "")),
        "notices": notices, "labels": _LABELS,
        "serious": any(notice.severity == "serious" for notice in notices),
        "unknowns": [_figure(row) for row in rows], **_extremes_context(fit, level),
        "has_before": any(row.before is not None for row in rows),
        "interval_note": note, "level": f"{level:.0%}",
        "fields_note": _fields_note(fit),
        "stills": _stills(data["fields"]),
        **readings_context(fit), **_course_context(fit),
        "scores": data["scores"] is not None,
        "asked": asked(fit.problem), "provenance": provenance(fit),
    }  # fmt: skip
    context["sections"] = _sections(context)
    return environment.from_string(_asset("page.html")).render(context) + "\n"


def _data(fit: Fit) -> dict[str, Any]:
    across, up, _, _ = axes_of(fit)
    quantity = fit.observations.quantities[0] if fit.observations is not None else ""
    return {
        "coordinates": pack.coordinates_data(fit),
        "fields": pack.fields_data(fit),
        "colours": pack.colours(),
        "readings": pack.readings_data(fit),
        "map": {"across": across, "up": up or quantity},
        "history": pack.history_data(fit),
        "scores": pack.scores_data(fit),
    }


def _asset(name: str) -> str:
    return (resources.files("unpinn.report") / "page" / name).read_text(encoding="utf-8")


def _wrapped(script: str) -> str:
    return f'"use strict";\n(() => {{\n{script}}})();\n'


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(data: Any) -> str:
    """JSON that cannot end its script element, whatever the texts in it are."""
    text = json.dumps(plain(data), allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# -- the head ------------------------------------------------------------------------------


def _title(fit: Fit) -> str:
    return fit.problem.name.replace("_", " ").strip() or "problem"


def _eyebrow(fit: Fit) -> str:
    last = "unlearning tried" if fit.status.code == "kept" else "unlearned"
    words = {"pinn": "physics-informed fit", "ppinn": f"physics-informed fit, {last}"}
    return words.get(fit.method, f"method {fit.method}")


def _lead(fit: Fit) -> str:
    count = shares(fit)
    asked_for = [
        *(s.name for s in fit.problem.scalars),
        *(f.name for f in fit.problem.unknown_fields),
    ]
    sought = f"Sought: {_listed(asked_for)}. " if asked_for else ""
    if fit.observations is None:
        return f"{sought}No readings; the fields follow from the equations and conditions."
    where = "" if fit.observations.sensor is None else (
        f" from {len(np.unique(fit.observations.sensor.astype(str))):,} sensors"
    )  # fmt: skip
    what = _listed(fit.observations.quantities)
    told = f"{sought}Given: {count['count']:,} readings of {what}{where}"
    if fit.partition is None:
        return f"{told}."
    if not count["suspect"]:
        return f"{told}, none of them suspect."
    return f"{told}, of which {count['suspect']:,} ({count['share']:.0%}) are suspect."


def _listed(names: Any) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _sections(context: Mapping[str, Any]) -> list[dict[str, str]]:
    first = [
        ("unknowns", "Found", bool(context["unknowns"] or context["extremes"])),
        ("know", "Warnings", bool(context["notices"])),
    ]
    every = [
        *(reversed(first) if context["serious"] else first),
        ("fields", "Fields", True),
        ("readings", "Suspects" if context.get("judged") else "Readings", context["readings"]),
        ("how", "How it went", True),
        ("asked", "Asked", True),
        ("provenance", "Provenance", True),
    ]
    return [{"id": name, "label": label} for name, label, there in every if there]


# -- unknowns ------------------------------------------------------------------------------


def _figure(row: UnknownRow) -> dict[str, Any]:
    """An unknown as texts, and its intervals as lines on a scale of 200."""
    was = ""
    if row.before is not None:
        was = f"{number(row.before)} before unlearning"
    return {
        "name": row.name, "unit": row.unit,
        "value": number(row.after, max(4, _digits(row.after_interval))),
        "interval": _interval(row.after_interval), "was": was,
        "initial": number(row.initial), "bounds": row.bounds, "before": number(row.before),
        "before_interval": _interval(row.before_interval), "spans": _spans(row),
    }  # fmt: skip


def _extremes_context(fit: Fit, level: float) -> dict[str, Any]:
    """Unknown fields as texts."""
    rows, note = extremes_of(fit, level)
    told = [
        {
            "name": row.field, "unit": row.unit, "which": row.which, "place": row.place,
            "value": number(row.value), "interval": _interval(row.interval),
            "before": number(row.before), "before_interval": _interval(row.before_interval),
        }
        for row in rows
    ]  # fmt: skip
    return {"extremes": told, "extremes_note": note, "extremes_before": any(
        row.before is not None for row in rows
    )}  # fmt: skip


def _interval(ends: Interval | None) -> str:
    if ends is None:
        return ""
    digits = _digits(ends)
    return f"{number(ends[0], digits)} to {number(ends[1], digits)}"


def _digits(ends: Interval | None) -> int:
    """As many digits as tell an interval's ends apart, and a value from them."""
    if ends is None or not abs(ends[1] - ends[0]) > 0:
        return 4
    width, size = abs(ends[1] - ends[0]), max(abs(ends[0]), abs(ends[1]))
    return min(8, max(3, int(np.ceil(np.log10(size / width))) + 2))


def _spans(row: UnknownRow) -> list[dict[str, Any]]:
    spans = [("before", row.before, row.before_interval), ("after", row.after, row.after_interval)]
    known = [(k, v, i) for k, v, i in spans if v is not None and i is not None]
    if not known:
        return []
    low, high = min(i[0] for *_, i in known), max(i[1] for *_, i in known)
    place = lambda value: round(10 + 180 * (value - low) / ((high - low) or 1.0), 2)  # noqa: E731
    return [
        {"kind": k, "low": place(i[0]), "high": place(i[1]), "value": place(v), "y": 10 + 14 * n}
        for n, (k, v, i) in enumerate(known)
    ]


# -- fields --------------------------------------------------------------------------------


def _fields_note(fit: Fit) -> str:
    source = "members' mean" if fit.members is not None else "network"
    known = [f.name for f in fit.problem.unknown_fields]
    extra = f" {_listed(known)} was sought, not measured." if known else ""
    return f"The fields as the {source} has them, anywhere in the domain.{extra}"


def _stills(fields: list[dict[str, Any]]) -> list[dict[str, str]]:
    found = []
    for field in fields:
        address = pack.still(field)
        if address is not None:
            version = field["versions"][0]
            told = f"{field['name']} from {number(version['low'])} to {number(version['high'])}"
            found.append({"address": address, "alt": f"{told} {field['unit']}".strip()})
    return found


# -- how it went ---------------------------------------------------------------------------


def _course_context(fit: Fit) -> dict[str, Any]:
    layers, pruning_text = [], ""
    if fit.pruning is not None:
        before, after = sum(fit.pruning.before), sum(fit.pruning.after)
        pruning_text = (
            f"Pruning by the criterion {fit.pruning.criterion!r} left {after:,} of {before:,} "
            "hidden neurons"
        )
        layers = [
            {"before": b, "after": a, "width": round(100 * a / b, 1), "share": f"{a / b:.0%}"}
            for b, a in zip(fit.pruning.before, fit.pruning.after, strict=True)
        ]
    return {
        "how_text": _evidence_text(fit), "layers": layers, "pruning_text": pruning_text,
        "protocol": protocol_rows(fit),
        "stopping": f"{fit.status.reason[:1].upper()}{fit.status.reason[1:]}.",
    }  # fmt: skip


def _evidence_text(fit: Fit) -> str:
    evidence = fit.details.get("evidence")
    if not isinstance(evidence, Mapping) or "gain" not in evidence:
        return ""
    which = "held-out readings" if evidence.get("held_out") else "readings"
    gain, error = float(evidence["gain"] or 0.0), float(evidence["error"] or 0.0)
    return (
        f"Against the plain network, unlearning changed the log-likelihood of the {which} by "
        f"{number(gain, 2)} ± {number(error, 2)} each, and the equations' residual (in units of "
        f"their own size) from {number(evidence['residual_before'], 2)} to "
        f"{number(evidence['residual_after'], 2)}."
    )
