"""Ways to damage a valid file: in its bytes, in its structure, in its tokens."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

# What a reader of numbers, names, sizes or paths may stumble over.
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, 1e-320,
    float("nan"), float("inf"), "", "nan", "null", "\x00", "\ud7ff", "ä" * 3, "../../etc/passwd",
    "x" * 3000, [], [[]], [None], {}, {"": {}}, "=1+1", "u.xx", "adam", "float64", "__class__",
]  # fmt: skip
_MOST_MARKS = 200_000
ODD_CELLS = [
    "", " ", "nan", "NaN", "inf", "-inf", "1e999", "1e-999", "0x10", "1_000", "1,5", "1.234,5",
    "--",
    "=1+1", "=HYPERLINK(\"http://a\")", "@SUM(A1)", "+1", "-1", "'1", '"', '""', '"a', "a\"b", "#",
    "2024-05-01", "2024-13-45", "99999-01-01", "2024-05-01T12:00:00Z", "12:00", "1 mm", "20 degC",
    "∞", "٣", "\x00", "\x1a", "\r", "\t", ";", "|", "True", "None", "1j", "1e5000", "9" * 400,
    "x" * 5000, "0.1.2", "²", "−1", "\ufeff", "\u2028", "NA", "<NA>", "[mm]", "x [mm]", "x [",
]  # fmt: skip
_INTERESTING = [b"\x00", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00",
                b"\xff\xff\xff\x7f", b"\x00" * 8, b"\xff" * 8, b"\n", b'"', b"{", b"}", b",",
                b"PK\x03\x04", b"CDF\x01", b"PAR1", b"\x93NUMPY"]  # fmt: skip


def damaged_bytes(chance: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """A few changes at random places: cut, flipped, removed, doubled, spliced with another file."""
    result = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        length = len(result)
        place = chance.randrange(length + 1)
        span = min(chance.choice((1, 1, 2, 4, 8, 64, 1024)), length - place)
        how = chance.randrange(8)
        if how == 0:
            del result[place:]
        elif how == 1 and length:
            place = min(place, length - 1)
            result[place] ^= 1 << chance.randrange(8)
        elif how == 2:
            del result[place : place + span]
        elif how == 3:
            result[place:place] = result[place : place + span]
        elif how == 4:
            odd = chance.choice(_INTERESTING)
            result[place : place + len(odd)] = odd
        elif how == 5:
            result[place : place + span] = chance.randbytes(span)
        elif how == 6:
            result[place:place] = chance.choice(_INTERESTING)
        else:
            other = chance.choice(others)
            begin = chance.randrange(len(other) + 1)
            result[place : place + span] = other[begin : begin + span]
    return bytes(result)


def damaged_content(chance: random.Random, content: Any) -> Any:
    """A nested value in which something is replaced, left out, renamed or doubled."""
    content = copy.deepcopy(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        places = _places(content)
        if not places:
            return chance.choice(ODD_VALUES)
        holder, key = chance.choice(places)
        how = chance.randrange(8)
        if how < 4:
            holder[key] = copy.deepcopy(chance.choice(ODD_VALUES))
        elif how == 4:
            del holder[key]
        elif how == 5:
            other, name = chance.choice(places)
            holder[key] = copy.deepcopy(other.get(name) if isinstance(other, dict) else other)
        elif how == 6 and isinstance(holder, dict):
            holder[str(chance.choice(ODD_VALUES))[:50]] = holder.pop(key)
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
    return content


def _places(content: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    if isinstance(content, (dict, list)):
        for key in list(content) if isinstance(content, dict) else range(len(content)):
            found.append((content, key))
            found += _places(content[key])
    return found


def damaged_json(chance: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """The same file with another content, or broken as text."""
    if chance.random() < 0.25:
        return damaged_bytes(chance, content, others)
    return json.dumps(damaged_content(chance, json.loads(content))).encode()


def damaged_arrays(chance: random.Random, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Named arrays of which some have another name, type, shape or content, or are missing."""
    arrays = dict(arrays)
    for _ in range(chance.choice((1, 1, 2, 3))):
        if not arrays:
            break
        name = chance.choice(sorted(arrays))
        array = arrays[name]
        changes: list[Callable[[], Any]] = [
            lambda a=array: a.astype(chance.choice(
                ["f2", "f4", "f8", "i1", "i4", "i8", "u1", "u8", "?"])),
            lambda a=array: a.reshape(-1),
            lambda a=array: a[None],
            lambda a=array: a.T,
            lambda a=array: a[:0] if a.ndim else a,
            lambda a=array: a[..., :1] if a.ndim else a,
            lambda a=array: np.concatenate([a, a]) if a.ndim else a,
            lambda a=array: np.full_like(a, chance.choice([0, 1, 100])),
            lambda a=array: np.full(a.shape, chance.choice([np.nan, np.inf, -np.inf, 1e300])),
            lambda a=array: np.float32(3.0),
            lambda a=array: _flipped(chance, a),
        ]  # fmt: skip
        how = chance.randrange(len(changes) + 3)
        if how < len(changes):
            with np.errstate(all="ignore"):
                arrays[name] = np.asarray(changes[how]())
        elif how == len(changes):
            del arrays[name]
        elif how == len(changes) + 1:
            arrays[str(chance.choice(["0.weight", "model", "", "a/b", "..", name + "x"]))] = (
                arrays.pop(name)
            )
        else:
            arrays[name] = arrays[chance.choice(sorted(arrays))]
    return arrays


def _flipped(chance: random.Random, array: np.ndarray) -> np.ndarray:
    """Some bytes of an array changed, its shape and type the same."""
    content = bytearray(array.tobytes())
    for _ in range(chance.choice((1, 2, 8))):
        if content:
            content[chance.randrange(len(content))] = chance.randrange(256)
    return np.frombuffer(bytes(content), array.dtype).reshape(array.shape)


def damaged_safetensors(chance: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """A valid file of other arrays and another description, or a broken one."""
    from safetensors.numpy import load, save

    from unpinn._files import _digest

    how = chance.random()
    if how < 0.3:
        return damaged_bytes(chance, content, others)
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if how < 0.45:
        text = json.dumps(damaged_content(chance, header)).encode()
        return len(text).to_bytes(8, "little") + text + content[8 + length :]
    arrays, about = load(content), json.loads(header["__metadata__"]["about"])
    if how < 0.75:
        about = damaged_content(chance, about)
    if how > 0.65:
        arrays = damaged_arrays(chance, arrays)
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    told = json.dumps(about)
    # With a checksum that is right, so that what comes after it is tried too.
    return save(arrays, {"about": told, "digest": _digest(arrays, told)})


def damaged_archive(chance: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """An .npz of other arrays, or one whose members are broken though its checksums are right."""
    how = chance.random()
    if how < 0.3:
        return damaged_bytes(chance, content, others)
    target = io.BytesIO()
    if how < 0.7:
        with np.load(io.BytesIO(content)) as file:
            arrays = damaged_arrays(chance, {name: file[name] for name in file.files})
        if chance.random() < 0.2 and arrays:
            odd = [np.array([{}, 1], object), np.array(["a", "b"]), np.array([1j, 2j]),
                   np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]), np.array([b"a"]),
                   np.array(["2024-05-01", "NaT"], "M8[D]"), np.array([1, 2], "m8[s]")]  # fmt: skip
            arrays[chance.choice(sorted(arrays))] = chance.choice(odd)
        np.savez(target, **{name or "_": array for name, array in arrays.items()})
        return target.getvalue()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(target, "w") as new:
        names = old.namelist()
        victim = chance.choice(names)
        for name in names:
            inner = old.read(name)
            if name == victim:
                inner = damaged_bytes(chance, inner[:200], [inner]) + inner[200:]
            new.writestr(name, inner)
    return target.getvalue()


def damaged_table(chance: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """A CSV text with odd cells, lines, separators, encodings."""
    if chance.random() < 0.2:
        return damaged_bytes(chance, content, others)
    lines = content.decode("utf-8", "replace").splitlines()
    for _ in range(chance.choice((1, 1, 2, 4))):
        if not lines:
            break
        row = chance.choice((0, chance.randrange(len(lines))))
        cells = re.split(r"[,;\t]", lines[row])
        how = chance.randrange(10)
        if how < 5:
            cells[chance.randrange(len(cells))] = chance.choice(ODD_CELLS)
            lines[row] = ",".join(cells)
        elif how == 5:
            # Some columns more than are allowed, but not a gigabyte of them.
            most = max(2, _MOST_MARKS // max(1, len(lines[row])))
            lines[row] = ",".join(cells * min(chance.choice((2, 2, 20, 3000)), most))
        elif how == 6:
            del lines[row]
        elif how == 7:
            lines.insert(row, lines[chance.randrange(len(lines))])
        elif how == 8:
            lines[row] = ",".join(cells[: chance.randrange(len(cells) + 1)])
        else:
            mark = chance.choice((";", "\t", "|", " ", ", "))
            lines = [line.replace(",", mark) for line in lines]
    text = chance.choice(("\n", "\n", "\n", "\r\n", "\r", "\n\n")).join(lines) + "\n"
    code = chance.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "utf-32"))
    return text.encode(code, "replace")


def damaged_plan(chance: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """A TOML text with odd values, keys and lines."""
    if chance.random() < 0.2:
        return damaged_bytes(chance, content, others)
    lines = content.decode().splitlines()
    for _ in range(chance.choice((1, 1, 2, 3))):
        row = chance.randrange(len(lines))
        name, equals, _ = lines[row].partition("=")
        how = chance.randrange(6)
        if how < 3 and equals:
            odd = ["true", "0", "-1", "1e400", "nan", "inf", '""', '"x"', "[]", '["x"]', "[[1]]",
                   "{}", "{a = 1}", "1979-05-27", '"\\u0000"', "0x" + "f" * 40, "[1, 1]",
                   "[" * 300 + "]" * 300, '"../x.py"', '["heat"]', '[{problem = "heat"}]',
                   "[true]", "[-1]", "[99999999999999999999]", "[1979-05-27]", "[nan]"]  # fmt: skip
            lines[row] = f"{name}= {chance.choice(odd)}"
        elif how == 3:
            del lines[row]
        elif how == 4:
            lines.insert(row, lines[chance.randrange(len(lines))])
        else:
            lines.insert(row, chance.choice(("[table]", "[[table]]", "[defaults]", "[[note]]",
                                             "x = 1", "[table.noise]", "name", "= 3")))  # fmt: skip
        if not lines:
            break
    return "\n".join(lines).encode("utf-8", "replace")


def digest_in(path: Any) -> str:
    """The digest of a run that a damaged checkpoint names, so that what comes after it is tried."""
    from unpinn import UserError
    from unpinn._files import read_arrays

    try:
        about = read_arrays(path)[1]
    except UserError:
        return ""
    return str(about.get("digest")) if isinstance(about, dict) else ""
