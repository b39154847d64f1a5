"""Small palette images without any drawing library."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

# Shades in a palette; the index of every point fits a byte.
SHADES = 256


def palette(name: str) -> np.ndarray:
    """A Matplotlib colour map as (256, 3) bytes."""
    from matplotlib import colormaps

    shades = colormaps[name](np.linspace(0, 1, SHADES))[:, :3]
    return np.round(shades * 255).astype(np.uint8)


def shaded(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Each value's shade between two ends; what is not a number takes the lowest."""
    span = high - low if high > low else 1.0
    level = np.nan_to_num((values - low) / span, nan=0.0, posinf=1.0, neginf=0.0)
    return np.round(np.clip(level, 0, 1) * (SHADES - 1)).astype(np.uint8)


def png(shades: np.ndarray, colours: np.ndarray) -> bytes:
    """An image (rows from the top, columns) of palette indices as PNG."""
    height, width = shades.shape
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with its filter, none
    rows[:, 1:] = shades
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", colours.tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    out = [b"\x89PNG\r\n\x1a\n"]
    for kind, content in parts:
        check = zlib.crc32(kind + content)
        out.append(struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check))
    return b"".join(out)


def data_address(image: bytes) -> str:
    """A PNG as an address that an image element can show."""
    return "data:image/png;base64," + base64.b64encode(image).decode()
