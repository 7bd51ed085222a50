"""The map that compaction keeps in memory: the last offset of each key, in bounded space.

An entry is a digest of the key and an offset, 24 bytes for keys of any length. Kafka's cleaner does
the same, with MD5. If two keys had the same digest, the record of the older one would be lost; with
128 bits the odds that any two of four million keys share a digest are about 1 to 10^25, far below
the odds of a disk that returns wrong bytes.

It is a hash table with open addressing and linear probing: a key's entry is in the slot that its
digest names, or in the first free one after it.
"""

from hashlib import blake2b
from struct import Struct

TABLE_BYTES = 128 * 1024 * 1024
"""The same as Kafka's `log.cleaner.dedupe.buffer.size`."""

_DIGEST = Struct("<QQ")
_ENTRY_BYTES = _DIGEST.size + 8
_SLOTS_FOR_THREE_KEYS = 4
"""A quarter of the slots stays free: a search ends at the first free slot."""

KEYS_MAX = (TABLE_BYTES // _ENTRY_BYTES - 1) // _SLOTS_FOR_THREE_KEYS * 3


class KeyMap:
    """Up to `keys_max` keys, each with an offset."""

    def __init__(self, keys_max: int) -> None:
        self._free = keys_max
        self._slots = keys_max * _SLOTS_FOR_THREE_KEYS // 3 + 1  # at least one is free
        self._high = memoryview(bytearray(8 * self._slots)).cast("Q")
        self._low = memoryview(bytearray(8 * self._slots)).cast("Q")
        # One more than the offset: a slot with a zero is free.
        self._following = memoryview(bytearray(8 * self._slots)).cast("Q")

    @property
    def size_bytes(self) -> int:
        """The size of the table, which does not depend on the number of keys in it."""
        return _ENTRY_BYTES * self._slots

    def put(self, key: bytes, offset: int) -> bool:
        """Store the offset of a key; return False if the key is new and the map is full."""
        slot, high, low = self._find(key)
        if not self._following[slot]:
            if not self._free:
                return False
            self._free -= 1
            self._high[slot], self._low[slot] = high, low
        self._following[slot] = offset + 1
        return True

    def offset_of(self, key: bytes) -> int:
        """Return the last offset that was stored for a key; -1 if there is none."""
        slot, _, _ = self._find(key)
        return self._following[slot] - 1

    def _find(self, key: bytes) -> tuple[int, int, int]:
        """Return the slot of a key, or the free slot for it, and its digest."""
        high, low = _DIGEST.unpack(blake2b(key, digest_size=_DIGEST.size).digest())
        highs, lows, following, slots = self._high, self._low, self._following, self._slots
        slot = high % slots
        while following[slot] and (highs[slot] != high or lows[slot] != low):
            slot += 1
            if slot == slots:
                slot = 0
        return slot, high, low
