"""Real arrays from MATLAB version 5 files, with every length checked before it is believed.

SciPy's reader is compiled code that takes lengths on trust: on a damaged file it can end the
process. What is read here are the numeric arrays of the classical wake, and nothing else.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
# What numbers may be stored as, by the type of their element.
_STORED = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
# What they are numbers of, by the class of the array; other classes are text, cells, objects.
_CLASSES = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8",
}  # fmt: skip
_COMPLEX = 0x0800
# A matrix's flags, shape and name come first, and are short.
_BEGINNING = 4096


@dataclass(frozen=True)
class Variable:
    """An array in a file, not read yet.

    Arguments:
        name: its name.
        shape: its shape.
        numeric: whether it holds real numbers.
    """

    name: str
    shape: tuple[int, ...]
    numeric: bool
    _kind: str
    _content: bytes
    _packed: bool
    _begin: int
    _order: str

    def read(self) -> np.ndarray:
        """The numbers; a `ValueError` where they are not all there."""
        if not self.numeric:
            return np.empty(self.shape, object)
        count = int(np.prod(self.shape, dtype=object))
        most = self._begin + 16 + 8 * count
        content = _unpacked(self._content, most) if self._packed else self._content
        stored, numbers, _ = _element(content, self._begin, self._order)
        if stored not in _STORED:
            raise ValueError(f"numbers stored as type {stored}")
        values = np.frombuffer(numbers, np.dtype(self._order + _STORED[stored]))
        # MATLAB's first index runs fastest.
        return values.reshape(self.shape, order="F").astype(self._kind)


def variables(content: bytes) -> Iterator[Variable]:
    """The variables of a file; a `ValueError` where it is damaged or of another kind."""
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None or struct.unpack(f"{order}H", content[124:126])[0] != 0x0100:
        raise ValueError("no MATLAB file of version 5")
    place = _HEADER
    while place < len(content):
        kind, inner, place = _element(content, place, order)
        packed = kind == _COMPRESSED
        if packed:
            begin = _unpacked(inner, _BEGINNING)
            kind, _ = struct.unpack_from(f"{order}II", _at_least(begin, 8))
            begin = begin[8:]
        else:
            begin = inner
        if kind == _MATRIX and inner:
            yield _variable(inner, begin, packed, order)


def _variable(content: bytes, begin: bytes, packed: bool, order: str) -> Variable:
    _, flags, place = _element(begin, 0, order)
    (word,) = struct.unpack_from(f"{order}I", _at_least(flags, 4))
    _, lengths, place = _element(begin, place, order)
    if len(lengths) % 4:
        raise ValueError("half a length")
    shape = struct.unpack(f"{order}{len(lengths) // 4}i", lengths)
    _, name, place = _element(begin, place, order)
    if any(length < 0 for length in shape) or not 2 <= len(shape) <= 8:
        raise ValueError(f"an array of shape {shape}")
    kind = _CLASSES.get(word & 0xFF, "")
    real = bool(kind) and not word & _COMPLEX
    start = place + 8 if packed else place
    return Variable(name.decode("latin-1"), shape, real, kind, content, packed, start, order)


def _element(content: bytes, place: int, order: str) -> tuple[int, bytes, int]:
    """Type and content of the element at a place, and where the next one begins."""
    if place + 8 > len(content):
        raise ValueError("it ends too early")
    kind, length = struct.unpack_from(f"{order}II", content, place)
    if kind >> 16:
        # A short element has its length beside its type, and its content in the same eight bytes.
        kind, length = kind & 0xFFFF, kind >> 16
        begin, after = place + 4, place + 8
        if length > 4:
            raise ValueError("a short element that is long")
    else:
        begin = place + 8
        after = begin + length + (0 if kind == _COMPRESSED else -length % 8)
    if begin + length > len(content):
        raise ValueError("it ends too early")
    return kind, content[begin : begin + length], after


def _unpacked(content: bytes, most: int) -> bytes:
    """The first bytes of what was compressed."""
    try:
        return zlib.decompressobj().decompress(content, most)
    except zlib.error as error:
        raise ValueError(str(error)) from None


def _at_least(content: bytes, count: int) -> bytes:
    if len(content) < count:
        raise ValueError("it ends too early")
    return content
