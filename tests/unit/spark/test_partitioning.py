"""Tests that keys go to the same partitions as with the Java producer."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.spark.sink.partitioning import Rotation, keyed_partitions, murmur2

FROM_JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""From UtilsTest.testMurmur2 of Apache Kafka."""

MASK = 0xFFFFFFFF


def one_at_a_time(key: bytes) -> int:
    """The algorithm as it is published, one word after the other."""
    hashed = (0x9747B28C ^ len(key)) & MASK
    whole = len(key) & ~3
    for place in range(0, whole, 4):
        word = int.from_bytes(key[place : place + 4], "little") * 0x5BD1E995 & MASK
        word = (word ^ (word >> 24)) * 0x5BD1E995 & MASK
        hashed = (hashed * 0x5BD1E995 & MASK) ^ word
    if key[whole:]:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * 0x5BD1E995 & MASK
    hashed = (hashed ^ (hashed >> 13)) * 0x5BD1E995 & MASK
    return hashed ^ (hashed >> 15)


def test_the_hashes_of_javas_own_test() -> None:
    hashes = murmur2(pa.array(list(FROM_JAVA)))
    assert hashes.astype(np.int32).tolist() == list(FROM_JAVA.values())


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=60), st.integers(0, 5))
def test_all_keys_at_once_as_one_at_a_time(keys: list[bytes | None], skipped: int) -> None:
    column = pa.array([b"before"] * skipped + keys, pa.binary()).slice(skipped)
    assert murmur2(column).tolist() == [one_at_a_time(key or b"") for key in keys]


def test_partitions_are_never_negative() -> None:
    keys = pa.array(list(FROM_JAVA))
    assert keyed_partitions(keys, 10).tolist() == [
        (value & 0x7FFFFFFF) % 10 for value in FROM_JAVA.values()
    ]


def test_rows_without_key_fill_a_batch_before_the_next_partition() -> None:
    rotation = Rotation(first=1, batch_bytes=100)
    sizes = np.full(5, 50, dtype=np.int64)
    assert rotation.partitions(sizes, 3).tolist() == [1, 1, 2, 2, 0]
    assert rotation.partitions(sizes, 3).tolist() == [0, 1, 1, 2, 2]
    assert rotation.partitions(sizes[:0], 3).tolist() == []
