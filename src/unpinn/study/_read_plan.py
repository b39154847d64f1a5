"""Read a study file, and refuse what it cannot mean, with file, line and the nearest name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

from unpinn._errors import UserError
from unpinn.benchmarks import BENCHMARKS
from unpinn.network import Architecture
from unpinn.rivals import METHODS, method_named
from unpinn.runs._configuration import PRESETS, PROTOCOLS, RECIPES
from unpinn.study._kinds import check_flag, check_kinds, check_option_kinds
from unpinn.study._plan import SETTINGS, Entry, Note, Plan, Table, merged
from unpinn.study._printed import PRINTED_METHODS, Printed, printed_numbers
from unpinn.study._quantities import check_quantity
from unpinn.study._source import Place, Source, unknown
from unpinn.study._unlearning import UNLEARNING
from unpinn.training import BUDGETS

_TOP = ("title", "about", "defaults", "table", "note")
_DEFAULTS = ("problems", "methods", "seeds", "quantities", "budgets", *SETTINGS)
_TABLE = (
    "name", "title", "about", "problems", "methods", "variants", "seeds", "quantities", "printed",
    "figure", "axis", "budgets", "main", *SETTINGS,
)  # fmt: skip
_ENTRY = {
    "problem": ("problem", "label", "data", *SETTINGS),
    "method": ("method", "label", "printed", *SETTINGS),
    "variant": ("label", "printed", "x", *SETTINGS),
}
_NOTE = ("text", "tables", "quantities", "problems", "methods")
_FIGURES = ("fields", "curves")
_CHOICES = {"protocol": PROTOCOLS, "preset": PRESETS, "recipe": RECIPES}
_NAMES = {
    "noise": ("high", "low", "share", "kind"),
    "unlearning": UNLEARNING,
    "network": tuple(f.name for f in fields(Architecture)),
}


def shipped_plans() -> tuple[str, ...]:
    """The studies that come with the package, by name."""
    folder = resources.files("unpinn.study") / "plans"
    found = (item.name for item in folder.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


def read_plan(name: str) -> Plan:
    """A study by name, or from a TOML file."""
    if not name.endswith(".toml"):
        if name not in shipped_plans():
            raise UserError(
                f"{unknown('study', name, shipped_plans())}; a study of your own is a .toml file"
            )
        text = (resources.files("unpinn.study") / "plans" / f"{name}.toml").read_text("utf-8")
        return parse_plan(Source(f"{name}.toml", text))
    path = Path(name)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        comes = path.stem in shipped_plans() and not path.exists()
        hint = f"; the study that comes with the package is called {path.stem!r}" if comes else ""
        raise UserError(f"cannot read the study file {path}: {reason}{hint}") from None
    return parse_plan(Source(name, text), path.parent)


def parse_plan(source: Source, folder: Path | None = None) -> Plan:
    """A plan from its text.

    Arguments:
        source: the text.
        folder: where the problem files that it names are looked for.
    """
    content, whole = source.content(), source.whole
    whole.check_names("setting of a study", content, _TOP)
    defaults = _mapping(content.get("defaults", {}), "defaults", whole)
    source.at("defaults", 0).check_names("default", defaults, _DEFAULTS)
    _check_settings(defaults, source.at("defaults", 0))
    tables = content.get("table")
    if not isinstance(tables, list) or not tables:
        raise whole.mistake("a study needs at least one [[table]]")
    reader = [_Reader(source.at("table", k), defaults, folder) for k in range(len(tables))]
    read = tuple(r.table(table) for r, table in zip(reader, tables, strict=True))
    names = [table.name for table in read]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise source.at("table", k).mistake(f"two tables are called {name!r}", name)
    given = content.get("note", [])
    if not isinstance(given, list):
        raise whole.mistake("notes are written as [[note]]", "note")
    notes = tuple(_note(note, read, source.at("note", k)) for k, note in enumerate(given))
    title, about = _text(content, "title", whole), _words(content, "about", "", whole)
    return Plan(Path(source.name).stem, title, about, read, notes, source)


class _Reader:
    """Reads one table, knowing where it stands in the file."""

    def __init__(self, place: Place, defaults: Mapping[str, Any], folder: Path | None):
        self._place = place
        self._defaults = defaults
        self._folder = folder

    def table(self, content: Any) -> Table:
        """The table."""
        place = self._place
        content = {**self._defaults, **_mapping(content, "table", place)}
        place.check_names("setting of a table", content, _TABLE)
        _check_settings(content, place)
        name = _text(content, "name", place)
        if not name.replace("-", "").replace("_", "").isalnum():
            raise place.mistake(f"the table's name {name!r} must be letters and digits", name)
        quantities = _strings(content.get("quantities", ["l2re"]), "quantities", place)
        for quantity in quantities:
            check_quantity(quantity, place)
        figure = content.get("figure")
        if figure is not None and figure not in _FIGURES:
            raise place.mistake(unknown("figure", figure, _FIGURES), figure)
        budgets = _strings(content.get("budgets", [*BUDGETS]), "budgets", place)
        place.check_names("budget", budgets, BUDGETS)
        for setting, named in (("quantities", quantities), ("budgets", budgets)):
            if not named:
                raise place.mistake(f"a table needs a list of {setting}", setting)
        main = check_flag("main", content.get("main", False), place)
        table = Table(
            name, _words(content, "title", name, place), _words(content, "about", "", place),
            self._entries(content, "problem"), self._entries(content, "method"),
            self._entries(content, "variant"), self._seeds(content), quantities,
            _settings(content), self._printed(content, quantities), figure,
            _words(content, "axis", "", place), budgets, main,
        )  # fmt: skip
        if figure == "curves" and any(variant.x is None for variant in table.variants):
            raise place.mistake("curves need a number x in every variant", "curves")
        self._check_options(table)
        return table

    def _check_options(self, table: Table) -> None:
        """Refuse an option that one of its methods does not have."""
        for method in table.methods:
            known = method_named(method.name).options
            for other in (*table.problems, *table.variants):
                given = merged(table.changes, other.changes, method.changes).get("options", {})
                self._place.check_names(f"option of {method.name}", given, known)
                check_option_kinds(method.name, given, known, self._place)

    def _seeds(self, content: Mapping[str, Any]) -> tuple[int, ...]:
        seeds = content.get("seeds", [42, 43, 44])
        whole = isinstance(seeds, list) and all(type(s) is int and s >= 0 for s in seeds)
        if not whole or not seeds or len({*seeds}) != len(seeds):
            raise self._place.mistake(
                f"seeds must be different whole numbers of zero or more, not {seeds!r}", "seeds"
            )
        return tuple(seeds)

    def _printed(self, content: Mapping[str, Any], quantities: Sequence[str]) -> dict[str, str]:
        printed, place = content.get("printed", {}), self._place
        printed = {quantities[0]: printed} if isinstance(printed, str) else printed
        place.check_names("quantity of this table", _mapping(printed, "printed", place), quantities)
        for where in printed.values():
            place.check_names("table of the paper", [where], printed_numbers().places)
        return dict(printed)

    def _entries(self, content: Mapping[str, Any], kind: str) -> tuple[Entry, ...]:
        given = content.get(f"{kind}s")
        if given is None and kind == "variant":
            return (Entry("", ""),)
        if not isinstance(given, list) or not given:
            there = "name" if given is None else f"{kind}s"
            raise self._place.mistake(f"a table needs a list of {kind}s", there)
        entries = tuple(self._entry(item, kind) for item in given)
        labels = [entry.label for entry in entries]
        for k, label in enumerate(labels):
            if label in labels[:k]:
                raise self._place.mistake(
                    f"two {kind}s are called {label!r}; give one of them another label", label
                )
        return entries

    def _entry(self, item: Any, kind: str) -> Entry:
        place = self._place
        if isinstance(item, str) and kind != "variant":
            item = {kind: item}
        content = _mapping(item, kind, place)
        place.check_names(f"setting of a {kind}", content, _ENTRY[kind])
        _check_settings(content, place)
        if kind == "variant":
            return Entry(
                "", _text(content, "label", place), _settings(content),
                _words(content, "printed", None, place), _number(content, place),
            )  # fmt: skip
        name = _text(content, kind, place)
        label = _words(content, "label", name, place)
        if kind == "method":
            place.check_names("method", [name], METHODS)
            label = _words(content, "label", PRINTED_METHODS.get(name, name), place)
            printed = _words(content, "printed", PRINTED_METHODS.get(name), place)
            return Entry(name, label, _settings(content), printed)
        if not name.endswith(".py"):
            place.check_names("problem", [name], BENCHMARKS)
            return Entry(name, label, _settings(content), Printed.problem(name))
        data = content.get("data")
        paths = [None if p is None else str((self._folder or Path()) / p) for p in (name, data)]
        for given, path in zip((name, data), paths, strict=True):
            if path is not None and not Path(path).is_file():
                raise place.mistake(f"there is no file {path}", given)
        label = _words(content, "label", Path(name).stem, place)
        return Entry(str(paths[0]), label, _settings(content), data=paths[1])


def _check_settings(content: Mapping[str, Any], place: Place) -> None:
    for name, known in _NAMES.items():
        if name in content:
            given = _mapping(content[name], name, place)
            place.check_names(f"{name} setting", given, known)
            check_kinds(name, given, place)
    for name, known in _CHOICES.items():
        if name in content:
            place.check_names(name, [content[name]], known)
    if "options" in content:
        _mapping(content["options"], "options", place)
    epochs = content.get("epochs", 1)
    if type(epochs) is not int or epochs < 1:
        raise place.mistake(f"epochs must be a whole number of 1 or more, not {epochs!r}", "epochs")


def _settings(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: content[name] for name in SETTINGS if name in content}


def _note(content: Any, tables: Sequence[Table], place: Place) -> Note:
    content = _mapping(content, "note", place)
    place.check_names("setting of a note", content, _NOTE)
    lists = {n: _strings(content.get(n, []), n, place) for n in _NOTE[1:]}
    columns = [(m, v.label) for t in tables for m in t.methods for v in t.variants]
    known = {
        "table": [t.name for t in tables],
        "quantity": [q for t in tables for q in t.quantities],
        "problem": [p.label for t in tables for p in t.problems],
        "method": [
            called
            for m, label in columns
            for name in (m.name, m.label)
            for called in (name, f"{name} {label}".strip())
        ],
    }
    for (what, names), given in zip(known.items(), lists.values(), strict=True):
        place.check_names(what, given, dict.fromkeys(names))
    return Note(_text(content, "text", place), **lists)


def _mapping(value: Any, name: str, place: Place) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise place.mistake(f"{name} must be a table of settings, not {value!r}", name)
    return dict(value)


def _text(content: Mapping[str, Any], name: str, place: Place) -> str:
    value = content.get(name)
    if not isinstance(value, str) or not value.strip():
        raise place.mistake(f"{name!r} must be given, as a text", name)
    return value


def _words(content: Mapping[str, Any], name: str, usual: Any, place: Place) -> Any:
    value = content.get(name, usual)
    if value is not usual and not isinstance(value, str):
        raise place.mistake(f"{name} must be a text, not {value!r}", name)
    return " ".join(value.split()) if isinstance(value, str) else value


def _strings(value: Any, name: str, place: Place) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise place.mistake(f"{name} must be a list of texts, not {value!r}", name)
    return tuple(value)


def _number(content: Mapping[str, Any], place: Place) -> float | None:
    x = content.get("x")
    if x is not None and (isinstance(x, bool) or not isinstance(x, (int, float))):
        raise place.mistake(f"x must be a number, not {x!r}", "x")
    return None if x is None else float(x)
