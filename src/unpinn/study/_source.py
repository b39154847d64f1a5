"""A study file's text, so that a mistake in it can be told with its line and the nearest name."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unpinn._errors import UserError


@dataclass(frozen=True)
class Source:
    """A TOML text and what it is called.

    Arguments:
        name: of the file, as the user wrote it.
        text: its content.
    """

    name: str
    text: str

    def content(self) -> dict[str, Any]:
        """The parsed text."""
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"\(at line (\d+), column \d+\)", str(error))
            line = int(found.group(1)) if found else max(1, self.text.count("\n") + 1)
            reason = re.sub(r" \(at .*\)$", "", str(error))
            raise UserError(
                f"{self.name}, line {line}: this is not valid TOML ({reason[:1].lower()}"
                f"{reason[1:]})"
            ) from None

    def at(self, header: str, number: int) -> Place:
        """The block under the header `[[header]]` of that number, or `[header]`."""
        lines = self.text.splitlines()
        wanted = re.compile(rf"\s*\[\[?\s*{re.escape(header)}\s*\]\]?\s*(#.*)?$")
        starts = [k for k, line in enumerate(lines) if wanted.match(line)]
        if number >= len(starts):
            return Place(self, 0, len(lines))
        start = starts[number]
        after = [k for k in range(start + 1, len(lines)) if re.match(r"\s*\[\[?\s*\w", lines[k])]
        return Place(self, start, after[0] if after else len(lines))

    @property
    def whole(self) -> Place:
        """The whole file."""
        return Place(self, 0, self.text.count("\n") + 1)


@dataclass(frozen=True)
class Place:
    """Some lines of a study file.

    Arguments:
        source: the file.
        begin: number of the first line, from 0.
        end: number of the line after the last.
    """

    source: Source
    begin: int
    end: int

    def line(self, *tokens: Any) -> int:
        """The line, from 1, of the first of these names or values that is found here."""
        lines = self.source.text.splitlines()
        for token in tokens:
            text = re.escape(str(token))
            wanted = re.compile(
                rf"(['\"]){text}\1|(?<![\w'\"-]){text}\s*=|=\s*{text}\b|[\[,]\s*{text}\s*[\],]"
            )
            for places in (range(self.begin, self.end), range(len(lines))):
                for k in places:
                    if k < len(lines) and wanted.search(lines[k].split(" #")[0]):
                        return k + 1
        return self.begin + 1

    def mistake(self, message: str, *tokens: Any) -> UserError:
        """An error that names file and line; the line is where the first token found stands."""
        return UserError(f"{self.source.name}, line {self.line(*tokens)}: {message}")

    def check_names(self, what: str, given: Iterable[Any], known: Iterable[str]) -> None:
        """Refuse the first name that is not known, with the nearest that is."""
        names = tuple(known)
        for name in given:
            if name not in names:
                raise self.mistake(unknown(what, name, names), name)


def unknown(what: str, name: Any, known: Iterable[str]) -> str:
    """A sentence on a name that does not exist.

    >>> unknown("method", "hubert", ["huber", "pinn"])
    "there is no method 'hubert'; did you mean 'huber'? (those are huber, pinn)"
    """
    names = tuple(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no {what} {name!r}{hint} (those are {', '.join(names)})"
