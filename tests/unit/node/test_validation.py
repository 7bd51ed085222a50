"""Tests which batches may enter a log, and the errors for the others."""

import pytest

from barnabas.metadata.topic_config import resolve
from barnabas.model.errors import ApiError, ErrorCode, InvalidRecordsError
from barnabas.node.partitions import batch_validation as validation
from barnabas.node.partitions.batch_validation import checked
from barnabas.protocol.compression import Codec, compress
from barnabas.protocol.crc import crc32c
from barnabas.protocol.records import CONTROL, CRC_FROM, Record, build, parse_header, records
from tests.support.talk.batches import make_batch

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def check(batch: memoryview, **config: str) -> memoryview:
    names = {name.replace("_", "."): value for name, value in config.items()}
    return checked(batch, parse_header(batch), resolve(names), NOW_MS)


def refusal(batch: memoryview, **config: str) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        check(batch, **config)
    return caught.value.code


def made(**changes: int) -> memoryview:
    """Return a batch with changed header fields and a correct checksum."""
    places = {
        "magic": (16, 1),
        "attributes": (21, 2),
        "last_offset_delta": (23, 4),
        "producer_id": (43, 8),
        "record_count": (57, 4),
    }
    batch = make_batch(2, timestamp=NOW_MS)
    for name, value in changes.items():
        start, size = places[name]
        batch[start : start + size] = value.to_bytes(size, "big", signed=True)
    batch[17:21] = crc32c(batch[CRC_FROM:]).to_bytes(4, "big")
    return batch


def timed(*timestamps: int) -> memoryview:
    """Return a batch of records with these timestamps."""
    content = [Record(n, timestamp, b"k", b"v") for n, timestamp in enumerate(timestamps)]
    return memoryview(build(content))


def test_a_good_batch_is_taken_as_it_is() -> None:
    batch = made()
    assert check(batch) is batch


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"magic": 1}, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ({"attributes": CONTROL}, ErrorCode.INVALID_RECORD),
        ({"attributes": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"attributes": 7}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"last_offset_delta": 2}, ErrorCode.INVALID_RECORD),
        ({"record_count": 3}, ErrorCode.INVALID_RECORD),
        ({"record_count": 0, "last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"record_count": -1, "last_offset_delta": -2}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 1}, ErrorCode.INVALID_RECORD),
    ],
)
def test_headers_that_are_refused(changes: dict[str, int], code: ErrorCode) -> None:
    assert refusal(made(**changes)) is code


def test_every_changed_byte_is_noticed_where_the_checksum_reaches() -> None:
    good = bytes(made())
    for byte in range(17, len(good)):
        batch = bytearray(good)
        batch[byte] ^= 1
        assert refusal(memoryview(batch)) is ErrorCode.CORRUPT_MESSAGE


def test_one_whole_batch_and_nothing_else() -> None:
    batch = made()
    for wrong in (bytes(batch) + b"\0", bytes(batch)[:-1], bytes(batch) * 2):
        assert refusal(memoryview(bytearray(wrong))) is ErrorCode.INVALID_RECORD


def test_the_largest_batch_is_taken_and_no_larger() -> None:
    batch = made()
    assert check(batch, max_message_bytes=str(len(batch))) is batch
    code = refusal(batch, max_message_bytes=str(len(batch) - 1))
    assert code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(("age_ms", "taken"), [(0, True), (HOUR_MS, True), (HOUR_MS + 1, False)])
def test_times_too_far_from_now(age_ms: int, taken: bool) -> None:
    early, late = make_batch(timestamp=NOW_MS - age_ms), make_batch(timestamp=NOW_MS + age_ms)
    config = {
        "message_timestamp_before_max_ms": str(HOUR_MS),
        "message_timestamp_after_max_ms": str(HOUR_MS),
    }
    for batch in (early, late):
        if taken:
            assert check(batch, **config) is batch
        else:
            assert refusal(batch, **config) is ErrorCode.INVALID_TIMESTAMP
    assert check(late, message_timestamp_type="LogAppendTime") is late


def test_a_record_without_a_timestamp_is_never_too_old() -> None:
    batch = timed(-1, NOW_MS, -1)
    assert check(batch, message_timestamp_before_max_ms="1000") is batch


def test_records_with_wrong_timestamps_are_named() -> None:
    batch = timed(-1, NOW_MS - 5, NOW_MS + HOUR_MS + 1, NOW_MS)
    with pytest.raises(InvalidRecordsError) as caught:
        check(batch, message_timestamp_before_max_ms="4")
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [place for place, _ in caught.value.record_errors] == [1, 2]


def test_a_batch_that_claims_a_later_timestamp_than_its_records_have() -> None:
    batch = timed(NOW_MS)
    batch[35:43] = (NOW_MS + HOUR_MS + 1).to_bytes(8, "big")
    batch[17:21] = crc32c(batch[CRC_FROM:]).to_bytes(4, "big")
    assert refusal(batch) is ErrorCode.INVALID_TIMESTAMP


def test_records_without_a_key_are_named() -> None:
    pairs = [(None if n % 10 == 5 else b"k", b"v") for n in range(100)]
    with pytest.raises(InvalidRecordsError) as caught:
        check(make_batch(pairs, timestamp=NOW_MS), cleanup_policy="compact")
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert [place for place, _ in caught.value.record_errors] == list(range(5, 100, 10))
    assert caught.value.message.startswith("10 of 100 records")


def test_only_so_many_records_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "RECORD_ERRORS_MAX", 3)
    with pytest.raises(InvalidRecordsError) as caught:
        check(make_batch([(None, b"v")] * 5, timestamp=NOW_MS), cleanup_policy="compact")
    assert len(caught.value.record_errors) == 3


def test_a_compacted_topic_wants_keys() -> None:
    batch = make_batch([(b"k", b"v"), (None, b"v")], timestamp=NOW_MS)
    assert check(batch) is batch
    assert refusal(batch, cleanup_policy="compact") is ErrorCode.INVALID_RECORD
    keyed = make_batch([(b"k", b"v"), (b"", None)], timestamp=NOW_MS)
    assert check(keyed, cleanup_policy="compact") is keyed


def test_a_compacted_topic_wants_records_that_can_be_read() -> None:
    batch = made(attributes=int(Codec.ZSTD))  # claims zstd, but is not
    assert refusal(batch, cleanup_policy="compact") is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("wanted", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("codec", Codec)
def test_a_topic_has_its_own_codec(codec: Codec, wanted: str) -> None:
    batch = make_batch([(b"k", b"value" * 50)] * 3, timestamp=NOW_MS, codec=codec)
    taken = check(batch, compression_type=wanted)
    header = parse_header(taken)
    expected = Codec.NONE if wanted == "uncompressed" else Codec[wanted.upper()]
    assert header.codec == expected
    assert (taken is batch) == (codec == expected)
    assert list(records(taken, header)) == list(records(batch, parse_header(batch)))
    assert check(taken, compression_type=wanted) is taken


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_what_cannot_be_unpacked_is_refused_where_it_must_be(codec: Codec) -> None:
    batch = made(attributes=int(codec))
    assert check(batch) is batch  # accepted, as in Kafka, which reads only the header
    assert refusal(batch, compression_type="uncompressed") is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("content", [b"\xff", b"\x00", b"\x01", b"\x7e", b"\x82"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_garbage_is_not_compressed_again(content: bytes, codec: Codec) -> None:
    batch = made()
    packed = compress(codec, content * (len(batch) - 61))
    garbage = memoryview(bytearray(batch[:61]) + packed)
    garbage[8:12] = (len(garbage) - 12).to_bytes(4, "big")
    garbage[21:23] = int(codec).to_bytes(2, "big")
    garbage[17:21] = crc32c(garbage[CRC_FROM:]).to_bytes(4, "big")
    assert check(garbage) is garbage  # only its header is read
    assert refusal(garbage, compression_type="lz4") is ErrorCode.INVALID_RECORD


def test_a_batch_that_no_segment_can_hold_is_refused() -> None:
    pairs = [(b"key", b"v" * 1_000)]
    batch = make_batch(pairs, timestamp=NOW_MS)
    assert check(batch, segment_bytes=str(len(batch))) is batch
    code = refusal(batch, segment_bytes=str(len(batch) - 1))
    assert code is ErrorCode.RECORD_LIST_TOO_LARGE
    too_large = {"segment_bytes": "1024", "max_message_bytes": "1024"}
    assert refusal(batch, **too_large) is ErrorCode.MESSAGE_TOO_LARGE


def test_the_size_that_counts_is_that_of_the_batch_as_it_is_stored() -> None:
    pairs = [(b"key", b"v" * 5_000)]
    packed = make_batch(pairs, timestamp=NOW_MS, codec=Codec.GZIP)
    plain = {"segment_bytes": "2000", "compression_type": "uncompressed"}
    assert refusal(packed, **plain) is ErrorCode.RECORD_LIST_TOO_LARGE
    batch = make_batch(pairs, timestamp=NOW_MS)
    assert len(check(batch, segment_bytes="2000", compression_type="gzip")) < 2_000
