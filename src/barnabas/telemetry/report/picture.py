"""Encodes a picture of few colours as a PNG in a data URI."""

import base64
import struct
import zlib
from collections.abc import Sequence

SIGNATURE = b"\x89PNG\r\n\x1a\n"
BITS = 8
PALETTE = 3

Colour = tuple[int, int, int]


def data_uri(rows: Sequence[Sequence[int]], palette: Sequence[Colour]) -> str:
    """Return rows of colour numbers as a picture; the number -1 is transparent."""
    clear = len(palette)
    lines = b"".join(b"\0" + bytes(clear if cell < 0 else cell for cell in row) for row in rows)
    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows), BITS, PALETTE, 0, 0, 0)
    colours = b"".join(bytes(colour) for colour in (*palette, (0, 0, 0)))
    chunks = (
        _chunk(b"IHDR", size)
        + _chunk(b"PLTE", colours)
        + _chunk(b"tRNS", b"\xff" * clear + b"\0")
        + _chunk(b"IDAT", zlib.compress(lines, 9))
        + _chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(SIGNATURE + chunks).decode()


def colour(text: str) -> Colour:
    """Read #rrggbb."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
