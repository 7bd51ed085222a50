"""Computes a fingerprint of rows that depends neither on their order nor on the number of tasks.

Every row gets a hash, and the fingerprint is the sum of all hashes: the rows of a batch add up to
the same number whatever the number of tasks. The hash of a row covers its key and its value: the
lengths, the first 64 bytes and the last 16. The sum of all bytes covers what lies between, at a
fifth of a nanosecond a byte. All of it is computed for the rows of an Arrow batch at once.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.spark.sink.record_encoding import Bytes, Integers, byte_offsets, lengths_and_sizes

HEAD_WORDS = 8
TAIL_WORDS = 2
WORD_BYTES = 8
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
KEY_SEED = np.uint64(0xC2B2AE3D27D4EB4F)
SHIFT = np.uint64(32)
MODULUS = 1 << 64
HEAD_BYTES = HEAD_WORDS * WORD_BYTES
MASKS = np.array([(1 << 8 * count) - 1 for count in range(WORD_BYTES + 1)], dtype=np.uint64)
"""By the number of bytes that a row has left in a word."""
WEIGHTS = np.array(
    [pow(0xD6E8FEB86659FD93, number + 1, MODULUS) for number in range(HEAD_WORDS + TAIL_WORDS + 1)],
    dtype=np.uint64,
)
"""By the number of a word, so that words cannot change places."""

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
    hashes, between = _hashes(values)
    if keys is not None:
        of_keys, more = _hashes(keys)
        hashes += of_keys * KEY_SEED
        between += more * 3
    hashes ^= hashes >> SHIFT
    hashes *= MULTIPLIER
    hashes ^= hashes >> SHIFT
    return Fingerprint(len(values), (int(hashes.sum(dtype=np.uint64)) + between) % MODULUS)


def _hashes(column: pa.Array) -> tuple[Hashes, int]:
    """Return a hash a row, and the sum of all bytes."""
    lengths, sizes = lengths_and_sizes(column)
    data, starts = _data(column)
    hashes: Hashes = lengths.astype(np.uint64) * MULTIPLIER
    longest = int(sizes.max())
    for word in range(min(HEAD_WORDS, -(-longest // WORD_BYTES))):
        at = word * WORD_BYTES
        places = np.minimum(starts + at, len(data) - WORD_BYTES)
        _add(hashes, _words(data, places), sizes - at, word)
    if longest > HEAD_BYTES:
        is_long = sizes > HEAD_BYTES
        for word in range(1, TAIL_WORDS + 1):
            places = np.where(is_long, starts + sizes - word * WORD_BYTES, 0)
            left = np.where(is_long, WORD_BYTES, 0)
            _add(hashes, _words(data, places), left, HEAD_WORDS + word)
    return hashes, _byte_sum(data)


def _add(hashes: Hashes, words: Hashes, left: Integers, number: int) -> None:
    """Add a word to each hash: as many of its bytes as the row has left.

    Nothing is added to a row that has none left, so a hash does not depend on its neighbours.
    """
    if int(left.min()) < WORD_BYTES:
        words &= MASKS[np.clip(left, 0, WORD_BYTES)]
    words *= MULTIPLIER
    words ^= words >> SHIFT
    words *= WEIGHTS[number]
    hashes += words


def _data(column: pa.Array) -> tuple[Bytes, Integers]:
    """Return the bytes of all rows, with room to read a word behind the last, and their starts."""
    offsets = byte_offsets(column)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + WORD_BYTES, dtype=np.uint8)
    buffer = column.buffers()[2]
    if buffer is not None:
        data[:-WORD_BYTES] = np.frombuffer(buffer, dtype=np.uint8)[first:last]
    return data, offsets[:-1] - first


def _words(data: Bytes, places: Integers) -> Hashes:
    """Return the little-endian words at places that need not be aligned."""
    count = len(data) - WORD_BYTES + 1
    every: Hashes = np.ndarray((count,), dtype="<u8", buffer=data, strides=(1,))
    return every[places]


def _byte_sum(data: Bytes) -> int:
    # 32 bits hold the sum of 16 million bytes.
    width = np.uint32 if len(data) < 1 << 24 else np.uint64
    return int(np.add.reduce(data, dtype=width))
