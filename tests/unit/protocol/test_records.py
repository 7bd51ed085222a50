"""Tests record batches: built, read, stamped, recompressed, and damaged in every way."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.model.errors import CorruptBatchError
from barnabas.protocol.compression import Codec, compress, decompress
from barnabas.protocol.crc import crc32c
from barnabas.protocol.records import (
    CRC_FROM,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    Record,
    batches,
    build,
    checksum,
    parse_header,
    read_varint,
    records,
    repacked,
    stamp,
    stamp_append_time,
    verify,
    write_varint,
)
from tests.support.examples import examples
from tests.support.talk.batches import make_batch

maybe_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), maybe_bytes), max_size=3).map(tuple)
contents = st.lists(
    st.tuples(st.integers(0, 2**41), maybe_bytes, maybe_bytes, headers), min_size=1, max_size=8
)


def sealed(batch: bytearray) -> bytearray:
    """Return a batch with a correct checksum."""
    batch[17:21] = crc32c(memoryview(batch)[CRC_FROM:]).to_bytes(4, "big")
    return batch


@given(content=contents, codec=st.sampled_from(Codec), base=st.integers(0, 2**60))
@settings(max_examples=examples(60), derandomize=True, database=None, deadline=None)
def test_what_is_built_is_read_back(
    content: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    codec: Codec,
    base: int,
) -> None:
    made = [Record(base + number, *facts) for number, facts in enumerate(content)]
    batch = build(
        made, codec=codec, leader_epoch=3, producer_id=9, producer_epoch=1, base_sequence=5
    )
    header = parse_header(batch)
    verify(batch, header)
    assert list(records(batch, header)) == made
    assert (header.base_offset, header.last_offset) == (base, base + len(made) - 1)
    assert header.max_timestamp == max(record.timestamp for record in made)
    assert (header.size, header.codec, header.record_count) == (len(batch), codec, len(made))
    assert header.last_sequence == 5 + len(made) - 1


def test_gaps_are_kept() -> None:
    kept = [Record(12, 5, b"k", b"v"), Record(17, 5, b"k", None)]
    batch = build(kept, base_offset=10, last_offset=20)
    header = parse_header(batch)
    assert (header.base_offset, header.last_offset, header.record_count) == (10, 20, 2)
    assert list(records(batch, header)) == kept


def test_an_empty_batch_is_a_batch() -> None:
    batch = build([], base_offset=10, last_offset=20, base_timestamp=7)
    header = parse_header(batch)
    verify(batch, header)
    assert list(records(batch, header)) == []
    assert (len(batch), header.max_timestamp) == (HEADER_BYTES, 7)


def test_offset_and_epoch_are_stamped_without_a_new_checksum() -> None:
    batch = make_batch(3)
    before = parse_header(batch)
    stamp(batch, 0, 1_234, 7)
    after = parse_header(batch)
    assert after == before._replace(base_offset=1_234, leader_epoch=7)
    verify(batch, after)


def test_the_time_of_arrival_is_every_records_time() -> None:
    batch = make_batch(3, timestamp=5, codec=Codec.LZ4)
    stamp_append_time(batch, 99)
    header = parse_header(batch)
    verify(batch, header)
    assert header.attributes & LOG_APPEND_TIME
    assert [record.timestamp for record in records(batch, header)] == [99, 99, 99]


@pytest.mark.parametrize("before", Codec)
@pytest.mark.parametrize("after", Codec)
def test_another_codec_changes_nothing_else(before: Codec, after: Codec) -> None:
    batch = make_batch([(b"k", b"v" * 99), (None, None)], codec=before, producer=(4, 2, 8))
    stamp_append_time(batch, 50)
    header = parse_header(batch)
    body = decompress(before, batch[HEADER_BYTES:])
    packed = repacked(batch, header, after, compress(after, body))
    header = parse_header(packed)
    verify(packed, header)
    assert header.codec == after
    assert list(records(packed, header)) == list(records(batch, parse_header(batch)))
    assert (header.producer_id, header.base_sequence) == (4, 8)


def test_batches_in_a_row() -> None:
    parts = [bytes(make_batch(count)) for count in (1, 5, 2)]
    row = b"".join(parts)
    assert [bytes(batch) for _, batch in batches(row)] == parts
    assert [bytes(batch) for _, batch in batches(row[:-1])] == parts[:2]
    assert list(batches(b"")) == []


def test_a_batch_shorter_than_its_header_is_no_batch() -> None:
    row = bytearray(make_batch(1))
    row[8:12] = (10).to_bytes(4, "big")
    with pytest.raises(CorruptBatchError, match="shorter than its header"):
        list(batches(row))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((slice(16, 17), b"\1"), "magic 1"),
        ((slice(11, 12), b"\0"), "in its header"),
        ((slice(70, 71), b"\xff"), "checksum"),
    ],
)
def test_verification_says_what_is_wrong(change: tuple[slice, bytes], why: str) -> None:
    batch = bytearray(make_batch(2))
    batch[change[0]] = change[1]
    with pytest.raises(CorruptBatchError, match=why):
        verify(batch, parse_header(batch))


def test_every_broken_body_is_corrupt_or_readable_and_never_anything_else() -> None:
    rng = Random(5)
    good = build([Record(n, n, b"key", b"value", (("h", b"x"),)) for n in range(5)])
    outcomes = {"read": 0, "corrupt": 0}
    for _ in range(3_000):
        batch = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            batch[rng.randrange(HEADER_BYTES, len(batch))] = rng.randrange(256)
        sealed(batch)
        try:
            found = list(records(batch, parse_header(batch)))
        except CorruptBatchError:
            outcomes["corrupt"] += 1
        else:
            assert len(found) == 5
            outcomes["read"] += 1
    assert min(outcomes.values()) > 100


@pytest.mark.parametrize("count", [0, 2, 4, 1_000_000, -1])
def test_a_count_that_does_not_match_is_noticed(count: int) -> None:
    batch = bytearray(make_batch(3))
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    sealed(batch)
    with pytest.raises(CorruptBatchError):
        list(records(batch, parse_header(batch)))


def test_a_record_of_a_wrong_length_is_noticed() -> None:
    batch = bytearray(make_batch(1))
    batch[HEADER_BYTES] += 2  # zigzag: one byte longer than it is
    batch += b"\0"
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    sealed(batch)
    with pytest.raises(CorruptBatchError, match="does not match its content"):
        list(records(batch, parse_header(batch)))


def test_unknown_codecs_are_refused() -> None:
    batch = bytearray(make_batch(1))
    batch[22] = 6
    with pytest.raises(CorruptBatchError, match="codec 6"):
        list(records(sealed(batch), parse_header(batch)))


def test_a_bomb_of_records_stops_at_the_limit() -> None:
    batch = make_batch([(b"k", bytes(1_000_000))], codec=Codec.ZSTD)
    with pytest.raises(CorruptBatchError):
        list(records(batch, parse_header(batch), limit=100_000))


@given(value=st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=examples(200), derandomize=True, database=None, deadline=None)
def test_varints_there_and_back(value: int) -> None:
    target = bytearray(b"head")
    write_varint(target, value)
    assert read_varint(bytes(target), 4) == (value, len(target))
    assert len(target) <= 14


def test_a_varint_without_an_end_is_refused() -> None:
    with pytest.raises(CorruptBatchError, match="longer than ten bytes"):
        read_varint(b"\xff" * 20, 0)
    with pytest.raises(IndexError):
        read_varint(b"\xff\xff", 0)


def test_the_checksum_is_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    batch = make_batch(1)
    assert checksum(batch) == parse_header(batch).crc
