"""Functions that compiled codecs call at run time: varints, tagged sections and packed arrays.

Lengths in flexible versions are unsigned varints of seven bits a byte, lowest first, of
length + 1, so that 0 is null. Nearly all fit one byte; compiled codecs read that byte inline and
call these functions only for longer ones.
"""

from collections.abc import Callable
from struct import Struct
from typing import NoReturn

from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer

VARINT_BYTES_MAX = 5
STRING_LENGTH_MAX = 0x7FFF
CACHED_COUNT_MAX = 64
"""Clients choose the length of arrays, so only packers of short ones are cached."""

ONE_BYTE = tuple(bytes([value]) for value in range(128))


def uvarint(value: int) -> bytes:
    """Return an unsigned varint."""
    if value < 128:
        return ONE_BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return an unsigned varint and the position after it."""
    first = buffer[position]
    if first < 128:
        return first, position + 1
    second = buffer[position + 1]
    if second < 128:
        return first & 127 | second << 7, position + 2
    value, shift = first & 127 | (second & 127) << 7, 14
    for index in range(position + 2, position + VARINT_BYTES_MAX):
        byte = buffer[index]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, index + 1
        shift += 7
    raise WireError("a varint is longer than five bytes")


def read_string_length(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return length + 1 of a compact string of 127 bytes or more."""
    length, position = read_uvarint(buffer, position)
    if length > STRING_LENGTH_MAX + 1:
        raise WireError(f"a string claims {length - 1} bytes")
    return length, position


def string_length(length: int) -> bytes:
    """Return the varint for length + 1 of a string."""
    if length > STRING_LENGTH_MAX + 1:
        # The caller turns this into an error that names the field.
        raise TypeError("a string is longer than 32767 bytes")
    return uvarint(length)


def skip_tags(buffer: Buffer, position: int, size: int) -> int:
    """Return the position after a tagged section whose tags are all unknown."""
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        length, position = read_uvarint(buffer, position)
        position += length
        if position > size:
            bad_length("tagged field", length)
    return position


def bad_length(name: str, length: int) -> NoReturn:
    """Refuse a length that is negative where null is not allowed, or beyond the end."""
    if length == -1:
        raise WireError(f"{name} is null")
    raise WireError(f"{name} claims a length of {length}, more than the bytes that are left")


def bad_tag(name: str) -> NoReturn:
    """Refuse a tagged field whose content and size differ."""
    raise WireError(f"a tagged field of {name} does not have the size that it claims")


class ArrayUnpackers(dict[int, Callable[[Buffer, int], tuple[int, ...]]]):
    """`unpack_from` for arrays of a scalar, by count."""

    def __init__(self, letter: str) -> None:
        super().__init__()
        self._letter = letter

    def __missing__(self, count: int) -> Callable[[Buffer, int], tuple[int, ...]]:
        unpack = Struct(f">{count}{self._letter}").unpack_from
        if count <= CACHED_COUNT_MAX:
            self[count] = unpack
        return unpack


class ArrayPackers(dict[int, Callable[..., bytes]]):
    """`pack(*values)` for arrays of a scalar with their count in front, by count."""

    def __init__(self, letter: str, *, compact: bool) -> None:
        super().__init__()
        self._letter = letter
        self._compact = compact

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = self._packer(count)
        if count <= CACHED_COUNT_MAX:
            self[count] = pack
        return pack

    def _packer(self, count: int) -> Callable[..., bytes]:
        body = Struct(f">{count}{self._letter}").pack
        prefix = uvarint(count + 1) if self._compact else Struct(">i").pack(count)

        def pack(*values: int) -> bytes:
            return prefix + body(*values)

        return pack
