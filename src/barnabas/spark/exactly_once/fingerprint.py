"""Computes a fingerprint of rows that depends neither on their order nor on the number of tasks.

Every row gets a hash, and the fingerprint is the sum of all hashes: the rows of a batch give the
same sum for any number of tasks. The hash of a row covers every byte of its key and its value: the
first 512 bytes word by word, each word with a different weight, for many rows of an Arrow batch
together; the rest by CRC-32C, row by row, which costs less than the words would.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.protocol.crc import crc32c
from barnabas.spark.sink.record_encoding import Bytes, Integers, byte_offsets, lengths_and_sizes

WORD_BYTES = 8
HEAD_WORDS = 64
HEAD_BYTES = HEAD_WORDS * WORD_BYTES
ROWS_AT_ONCE = 4096
"""The heads of this many rows fit into the processor's cache."""
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
KEY_SEED = np.uint64(0xC2B2AE3D27D4EB4F)
REST_SEED = np.uint64(0x165667B19E3779F9)
SHIFT = np.uint64(32)
MODULUS = 1 << 64
MASKS = np.array([(1 << 8 * count) - 1 for count in range(WORD_BYTES)], dtype=np.uint64)
"""Masks by the number of bytes that a row has in its last word."""
WEIGHTS = np.array(
    [pow(0xD6E8FEB86659FD93, number + 1, MODULUS) for number in range(HEAD_WORDS + 1)],
    dtype=np.uint64,
)
"""Weights by the number of a word, so that the order of words matters; odd ones lose no change."""

Hashes = npt.NDArray[np.uint64]


class Fingerprint(NamedTuple):
    """How many rows, and the sum of their hashes."""

    rows: int
    digest: int

    def plus(self, other: "Fingerprint") -> "Fingerprint":
        """Return the fingerprint of these rows and the other ones together."""
        return Fingerprint(self.rows + other.rows, (self.digest + other.digest) % MODULUS)


NO_ROWS = Fingerprint(0, 0)


def fingerprint(values: pa.Array, keys: pa.Array | None) -> Fingerprint:
    """Return the fingerprint of rows, whose columns are binary."""
    if len(values) == 0:
        return NO_ROWS
    hashes = _hashes(values)
    if keys is not None:
        hashes += _hashes(keys) * KEY_SEED
    hashes ^= hashes >> SHIFT
    hashes *= MULTIPLIER
    hashes ^= hashes >> SHIFT
    return Fingerprint(len(values), int(hashes.sum(dtype=np.uint64)))


def _hashes(column: pa.Array) -> Hashes:
    """Return a hash of each row of a column."""
    lengths, sizes = lengths_and_sizes(column)
    data, starts = _data(column)
    hashes: Hashes = lengths.astype(np.uint64) * MULTIPLIER
    for first in range(0, len(sizes), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        hashes[rows] += _head_hashes(data, starts[rows], np.minimum(sizes[rows], HEAD_BYTES))
    is_long = np.flatnonzero(sizes > HEAD_BYTES)
    if len(is_long):
        hashes[is_long] += _rest_hashes(data, starts[is_long], sizes[is_long])
    return hashes


def _head_hashes(data: Bytes, starts: Integers, sizes: Integers) -> Hashes:
    """Return the weighted sum of the words of each row; its last word may be cut short."""
    full, over = np.divmod(sizes, WORD_BYTES)
    count = int(full.max())
    last = _pieces(data, starts + full * WORD_BYTES, 1)[:, 0] & MASKS[over]
    hashes: Hashes = last * WEIGHTS[full]
    if count:
        words = _pieces(data, starts, count)
        if int(full.min()) < count:
            # What follows a row belongs to the next one.
            words *= np.arange(count) < full[:, np.newaxis]
        hashes += words @ WEIGHTS[:count]
    return hashes


def _rest_hashes(data: Bytes, starts: Integers, sizes: Integers) -> Hashes:
    """Return a hash of what lies behind the head of each row."""
    view = data.data
    pairs = zip((starts + HEAD_BYTES).tolist(), (starts + sizes).tolist(), strict=True)
    checksums = [crc32c(view[start:end]) for start, end in pairs]
    return np.array(checksums, dtype=np.uint64) * REST_SEED


def _data(column: pa.Array) -> tuple[Bytes, Integers]:
    """Return the bytes of all rows, with room to read a head behind the last, and their starts."""
    offsets = byte_offsets(column)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + HEAD_BYTES + WORD_BYTES, dtype=np.uint8)
    buffer = column.buffers()[2]
    if buffer is not None:
        data[: last - first] = np.frombuffer(buffer, dtype=np.uint8)[first:last]
    return data, offsets[:-1] - first


def _pieces(data: Bytes, places: Integers, words: int) -> Hashes:
    """Return little-endian words at places that need not be aligned: a row of them for each."""
    size = words * WORD_BYTES
    every = np.ndarray((len(data) - size + 1,), dtype=f"V{size}", buffer=data, strides=(1,))
    return every[places].view("<u8").reshape(len(places), words).astype(np.uint64, copy=False)
