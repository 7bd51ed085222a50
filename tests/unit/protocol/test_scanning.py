"""Tests that scanning records without creating objects finds the same as creating them."""

from random import Random

import pytest

from barnabas.model.errors import CorruptBatchError, TooLargeError
from barnabas.model.steps import Rest, Steps, begin, finish
from barnabas.protocol.compression import Codec, compress
from barnabas.protocol.records import HEADER_BYTES, Record, build, parse_header, records
from barnabas.protocol.scanning import (
    SMALL_PACKED_BYTES,
    RecordCheck,
    first_timestamp,
    largest_timestamp,
    packed,
    unpacked,
)

LIMIT = 1 << 20


def some_records(rng: Random, count: int) -> list[Record]:
    """Return records with gaps between offsets, times in any order, and fields of any length."""
    content, offset = [], 0
    for _ in range(count):
        lengths = [0, 1, 63, 64, 200, 9_000]
        key, value = (
            None if rng.random() < 0.2 else rng.randbytes(rng.choice(lengths)) for _ in range(2)
        )
        headers = tuple(("h" * n, b"x" * n) for n in range(rng.choice([0, 0, 0, 1, 3])))
        time = rng.choice([1_000, 1_001, 999, 70_000, 5_000_000, 0])
        content.append(Record(offset, time, key, value, headers))
        offset += rng.choice([1, 1, 1, 100])
    return content


@pytest.mark.parametrize("seed", range(20))
def test_times_are_found_as_by_making_the_records(seed: int) -> None:
    rng = Random(seed)
    content = some_records(rng, rng.randint(1, 60))
    batch = bytes(build(content))
    base = parse_header(batch).base_timestamp
    readable = range(rng.randint(0, 5), rng.randint(5, 200))
    seen = [record for record in content if record.offset in readable]
    for least in (-2_000, 0, 1, 50_000, 4_000_000, 10_000_000):
        expected = next((r for r in seen if r.timestamp - base >= least), None)
        portion = rng.randint(1, 70)
        position, found, left = HEADER_BYTES, None, len(content)
        while left > 0 and found is None:
            count = min(left, portion)
            position, found = first_timestamp(batch, position, count, least, readable)
            left -= count
        assert found == (expected and (expected.timestamp - base, expected.offset))
    position, best = largest_timestamp(batch, HEADER_BYTES, len(content), None, readable)
    latest = max(seen, key=lambda r: (r.timestamp, -r.offset), default=None)
    assert best == (latest and (latest.timestamp - base, latest.offset))
    assert position == len(batch)


@pytest.mark.parametrize("units", [1, 2, 7, 1_000])
def test_records_out_of_range_or_without_a_key_are_found_in_portions(units: int) -> None:
    content = some_records(Random(units), 200)
    batch = bytes(build(content))
    base = parse_header(batch).base_timestamp
    times = (999 - base, 80_000 - base, -1 - base)
    check = RecordCheck(batch, HEADER_BYTES, len(content), times, 10)
    portions = 1
    while check.look(units):
        portions += 1
    late = [n for n, r in enumerate(content) if not 999 <= r.timestamp <= 80_000]
    bare = [n for n, r in enumerate(content) if r.key is None]
    assert check.out_of_range_count == len(late)
    assert [place for place, _ in check.out_of_range] == late[:10]
    assert [base + delta for _, delta in check.out_of_range] == [
        content[n].timestamp for n in late[:10]
    ]
    assert (check.without_key_count, check.without_key) == (len(bare), bare[:10])
    headers = sum(len(record.headers) for record in content)
    assert portions >= (200 + headers) // units


def test_a_record_with_very_many_headers_is_checked_in_portions() -> None:
    record = Record(0, 0, b"k", b"v", tuple((str(n), None) for n in range(1_000)))
    batch = bytes(build([record, record._replace(offset=1)]))
    check = RecordCheck(batch, HEADER_BYTES, 2, None, 10)
    portions = 1
    while check.look(100):
        portions += 1
    assert portions >= 20


def test_garbage_is_refused_where_records_cannot_be_made_of_it() -> None:
    rng = Random(4)
    good = bytes(build(some_records(rng, 5)))
    header = parse_header(good)
    for _ in range(2_000):
        broken = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            broken[rng.randrange(HEADER_BYTES, len(broken))] = rng.randrange(256)
        try:
            list(records(broken, header))
            readable = True
        except CorruptBatchError:
            readable = False
        check = RecordCheck(bytes(broken), HEADER_BYTES, header.record_count, None, 10)
        try:
            while check.look(3):
                pass
            taken = True
        except CorruptBatchError:
            taken = False
        assert taken == readable


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_small_batch_is_unpacked_at_once_and_a_large_one_by_a_call(codec: Codec) -> None:
    def begun(content: bytes) -> bytes | Rest[bytes]:
        return begin(unpacked(codec, compress(codec, content), LIMIT))

    assert begun(b"x" * 1_000) == b"x" * 1_000
    large = begun(Random(1).randbytes(SMALL_PACKED_BYTES * 2))
    assert isinstance(large, Rest)
    assert large.call is not None
    spread = begun(bytes(500_000))  # a few bytes of these codecs
    assert isinstance(spread, Rest)
    assert finish(*spread) == bytes(500_000)
    bomb = begun(bytes(LIMIT + 1))
    assert isinstance(bomb, Rest)
    with pytest.raises(TooLargeError):
        finish(*bomb)


def test_a_large_batch_is_packed_by_a_call() -> None:
    steps: Steps[bytes] = packed(Codec.GZIP, bytes(100_000), None)
    begun = begin(steps)
    assert isinstance(begun, Rest)
    assert finish(*begun) == compress(Codec.GZIP, bytes(100_000))
    assert begin(packed(Codec.GZIP, b"few", None)) == compress(Codec.GZIP, b"few")
