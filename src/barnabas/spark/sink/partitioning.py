"""Chooses the partition of each row, for all rows of a batch at once.

A key goes to the partition that Java's producer chooses: murmur2 of its bytes, modulo the number of
partitions. Applications that share a topic with Java clients, or join two topics partition by
partition, rely on it. Rows without a key go to one partition until a batch is full and then to the
next (KIP-480). A partition column that names one overrides both.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.spark.sink.record_encoding import Integers, byte_offsets, lengths_and_sizes

SEED = 0x9747B28C
MULTIPLIER = np.uint32(0x5BD1E995)
SHIFT = np.uint32(24)
POSITIVE = 0x7FFFFFFF

Hashes = npt.NDArray[np.uint32]


def murmur2(keys: pa.Array) -> Hashes:
    """Return the hash of every key, as Java computes it; null hashes as an empty key.

    The longest keys come first, so that the rows that have a word left are always the first ones:
    each step mixes one word of 4 bytes into all of these.
    """
    starts = byte_offsets(keys)[:-1]
    _, sizes = lengths_and_sizes(keys)
    order = np.argsort(-sizes, kind="stable")
    starts, sizes = starts[order], sizes[order]
    data = _padded(keys)
    hashes = (SEED ^ sizes).astype(np.uint32)
    words = sizes >> 2
    for word in range(int(words[0]) if len(words) else 0):
        active = int(np.searchsorted(-words, -word, side="left"))
        _mix(hashes[:active], _words(data, starts[:active] + 4 * word))
    _mix_tail(hashes, data, starts + 4 * words, sizes & 3)
    hashes ^= hashes >> np.uint32(13)
    hashes *= MULTIPLIER
    hashes ^= hashes >> np.uint32(15)
    found = np.empty_like(hashes)
    found[order] = hashes
    return found


def _padded(keys: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of all keys with room to read a whole word at the end."""
    buffer = keys.buffers()[2]
    data = np.zeros(0 if buffer is None else buffer.size + 4, dtype=np.uint8)
    if buffer is None:
        return np.zeros(4, dtype=np.uint8)
    data[:-4] = np.frombuffer(buffer, dtype=np.uint8)
    return data


def _words(data: npt.NDArray[np.uint8], places: Integers) -> Hashes:
    """Return the little-endian words at places that need not be aligned."""
    every: Hashes = np.ndarray((len(data) - 3,), dtype="<u4", buffer=data, strides=(1,))
    return every[places]


def _mix(hashes: Hashes, words: Hashes) -> None:
    words *= MULTIPLIER
    words ^= words >> SHIFT
    words *= MULTIPLIER
    hashes *= MULTIPLIER
    hashes ^= words


def _mix_tail(
    hashes: Hashes, data: npt.NDArray[np.uint8], places: Integers, rest: Integers
) -> None:
    """Mix in the one to three bytes after the last whole word."""
    cut = np.flatnonzero(rest)
    if len(cut) == 0:
        return
    keep = (np.uint32(1) << (rest[cut] * 8).astype(np.uint32)) - np.uint32(1)
    hashes[cut] = (hashes[cut] ^ (_words(data, places[cut]) & keep)) * MULTIPLIER


def keyed_partitions(keys: pa.Array, count: int) -> Integers:
    """Return the partition of each key, given the number of partitions."""
    if count == 1:
        return np.zeros(len(keys), dtype=np.int64)
    return (murmur2(keys) & np.uint32(POSITIVE)).astype(np.int64) % count


class Rotation:
    """The partitions that rows without a key go to, one after the other."""

    def __init__(self, first: int, batch_bytes: int) -> None:
        """Take the first partition, and the bytes after which the next partition is used."""
        self._written = first * batch_bytes
        self._batch_bytes = batch_bytes

    def partitions(self, sizes: Integers, count: int) -> Integers:
        """Return the partitions of rows of these sizes, given the number of partitions."""
        if len(sizes) == 0:
            return np.zeros(0, dtype=np.int64)
        before = self._written + np.cumsum(sizes) - sizes
        self._written = int(before[-1] + sizes[-1])
        return (before // self._batch_bytes) % count
