"""Tests Produce: accepted batches, refused ones with their errors, and when it responds."""

from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode, WireError
from barnabas.protocol.compression import Codec
from barnabas.protocol.messages import produce as messages
from barnabas.protocol.records import (
    CONTROL,
    LOG_APPEND_TIME,
    Record,
    build,
    checksum,
    parse_header,
    verify,
)
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.requests import (
    batch,
    create_topic,
    error_codes,
    fetch,
    produce,
    read,
    send_produce,
)

HOUR_MS = 3_600_000


@pytest.fixture(params=["handler", "fast path"])
def talk(tmp_path: Path, request: pytest.FixtureRequest) -> Dialogue:
    """The fast path and the normal path of a request must give the same results."""
    made = Dialogue(tmp_path)
    made.fast_path = request.param == "fast path"
    return made


def with_crc(content: bytearray) -> bytearray:
    content[17:21] = checksum(content).to_bytes(4, "big")
    return content


def altered(position: int, value: bytes) -> bytearray:
    content = batch(3)
    content[position : position + len(value)] = value
    return with_crc(content)


def flipped() -> bytearray:
    content = batch(3)
    content[-1] ^= 1
    return content


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(flipped(), ErrorCode.CORRUPT_MESSAGE, id="bad checksum"),
        pytest.param(batch() + batch(), ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(batch()[:-1], ErrorCode.INVALID_RECORD, id="a batch cut short"),
        pytest.param(batch()[:40], ErrorCode.INVALID_RECORD, id="less than a header"),
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="nothing"),
        pytest.param(
            altered(57, (4).to_bytes(4, "big")),
            ErrorCode.INVALID_RECORD,
            id="a count that is too high",
        ),
        pytest.param(
            altered(57, (2).to_bytes(4, "big")),
            ErrorCode.INVALID_RECORD,
            id="a count that is too low",
        ),
        pytest.param(
            altered(23, (-1).to_bytes(4, "big", signed=True)),
            ErrorCode.INVALID_RECORD,
            id="negative offset",
        ),
        pytest.param(batch(attributes=CONTROL), ErrorCode.INVALID_RECORD, id="a control batch"),
        pytest.param(
            batch(producer=(7, 0, -1)), ErrorCode.INVALID_RECORD, id="a producer without a sequence"
        ),
        pytest.param(
            altered(22, b"\x07"),
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            id="an undefined codec",
        ),
        pytest.param(
            altered(16, b"\x01"), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, id="an old format"
        ),
        pytest.param(batch(value=bytes(2 << 20)), ErrorCode.MESSAGE_TOO_LARGE, id="too large"),
        pytest.param(
            batch(start_ms=START_MS + HOUR_MS + 1),
            ErrorCode.INVALID_TIMESTAMP,
            id="from the future",
        ),
    ],
)
def test_bad_batches_are_refused(talk: Dialogue, content: bytes, code: int) -> None:
    create_topic(talk, "a")
    result = produce(talk, "a", content)
    assert (result.error_code, result.base_offset) == (code, -1)
    assert len(result.error_message) > 10
    assert fetch(talk, "a").high_watermark == 0


def test_no_records_at_all(talk: Dialogue) -> None:
    create_topic(talk, "a")
    ((result,),) = [t.partition_responses for t in send_produce(talk, "a", None).answer.responses]
    assert result.error_code == ErrorCode.INVALID_RECORD


def test_unknown_places(talk: Dialogue) -> None:
    topic_id = create_topic(talk, "a")
    assert produce(talk, "none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(talk, "a", partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(talk, "a", partition=-1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(talk, b"n" * 16).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert produce(talk, topic_id, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_old_records_are_refused_where_the_topic_says_so(talk: Dialogue) -> None:
    create_topic(talk, "a", config={"message.timestamp.before.max.ms": "1000"})
    assert (
        produce(talk, "a", batch(start_ms=START_MS - 1001)).error_code
        == ErrorCode.INVALID_TIMESTAMP
    )
    assert produce(talk, "a", batch(start_ms=START_MS - 1000)).error_code == 0
    create_topic(talk, "b")
    assert produce(talk, "b", batch(start_ms=0)).error_code == 0


def test_zstd_needs_a_version_that_knows_it(talk: Dialogue) -> None:
    create_topic(talk, "a")
    content = batch(codec=Codec.ZSTD)
    assert (
        produce(talk, "a", content, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )
    assert produce(talk, "a", content, version=7).error_code == 0


@pytest.mark.parametrize("codec", Codec)
def test_compacted_topics_need_keys(talk: Dialogue, codec: Codec) -> None:
    create_topic(talk, "a", config={"cleanup.policy": "compact"})
    assert (
        produce(talk, "a", batch(3, key=None, codec=codec)).error_code == ErrorCode.INVALID_RECORD
    )
    mixed = [Record(n, START_MS, key, b"") for n, key in enumerate((b"k", None))]
    assert produce(talk, "a", build(mixed, codec=codec)).error_code == ErrorCode.INVALID_RECORD
    assert produce(talk, "a", batch(3, codec=codec)).error_code == 0


def test_packed_nonsense_is_refused_where_it_is_opened(talk: Dialogue) -> None:
    junk = batch(3, value=bytes(50), codec=Codec.GZIP)
    junk[61:] = bytes(len(junk) - 61)
    for config in ({"cleanup.policy": "compact"}, {"compression.type": "lz4"}):
        name = next(iter(config))
        create_topic(talk, name, config=config)
        assert produce(talk, name, with_crc(junk)).error_code == ErrorCode.INVALID_RECORD


def test_one_bad_partition_spares_the_others(talk: Dialogue) -> None:
    create_topic(talk, "a", 3)
    contents = (batch(), flipped(), batch())
    data = [
        messages.PartitionProduceData(index=index, records=bytes(content))
        for index, content in enumerate(contents)
    ]
    topics = [messages.TopicProduceData(name="a", partition_data=data)]
    request = messages.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    (answered,) = talk.ask(request, 12).responses
    assert error_codes(answered.partition_responses) == [0, ErrorCode.CORRUPT_MESSAGE, 0]


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_acks_that_do_not_exist(talk: Dialogue, acks: int) -> None:
    create_topic(talk, "a")
    assert produce(talk, "a", acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert fetch(talk, "a").high_watermark == 0


def test_acks_0_is_not_answered(talk: Dialogue) -> None:
    create_topic(talk, "a")
    assert send_produce(talk, "a", batch(), acks=0).waiting
    assert fetch(talk, "a").high_watermark == 1
    with pytest.raises(WireError, match="CORRUPT_MESSAGE"):
        send_produce(talk, "a", flipped(), acks=0)


def test_acks_all_waits_for_the_disk(talk: Dialogue) -> None:
    create_topic(talk, "a")
    talk.hold_syncs = True
    sure, quick = send_produce(talk, "a", batch()), send_produce(talk, "a", batch(), acks=1)
    assert (sure.waiting, quick.waiting) == (True, False)
    assert fetch(talk, "a").high_watermark == 0, "records that may be lost must not be served"
    talk.release_syncs()
    assert not sure.waiting
    assert fetch(talk, "a").high_watermark == 2


def test_what_takes_too_long_is_answered_so(talk: Dialogue) -> None:
    create_topic(talk, "a", 2)
    talk.hold_syncs = True
    data = [messages.PartitionProduceData(index=index, records=bytes(batch())) for index in (0, 9)]
    topics = [messages.TopicProduceData(name="a", partition_data=data)]
    request = messages.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    exchange = talk.send(request, 12)
    talk.pass_time(999)
    assert exchange.waiting
    talk.pass_time(1)
    (answered,) = exchange.answer.responses
    assert error_codes(answered.partition_responses) == [
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    talk.release_syncs()
    assert fetch(talk, "a").high_watermark == 1


def test_interval_flush_does_not_wait(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"storage.flush": "interval"})
    create_topic(talk, "a")
    talk.hold_syncs = True
    assert not send_produce(talk, "a", batch()).waiting


def test_append_time_is_returned_and_stored(talk: Dialogue) -> None:
    create_topic(talk, "a", config={"message.timestamp.type": "LogAppendTime"})
    talk.pass_time(5000)
    for codec in Codec:
        result = produce(talk, "a", batch(3, codec=codec, start_ms=START_MS + 9 * HOUR_MS))
        assert (result.error_code, result.log_append_time_ms) == (0, talk.now_ms)
    content = fetch(talk, "a").records
    assert {record.timestamp for record in read(content)} == {talk.now_ms}
    header = parse_header(content)
    assert header.attributes & LOG_APPEND_TIME
    verify(content[: header.size], header)


def test_create_time_is_not_returned(talk: Dialogue) -> None:
    create_topic(talk, "a")
    assert produce(talk, "a").log_append_time_ms == -1


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("codec", Codec)
def test_a_topic_has_its_own_codec(talk: Dialogue, codec: Codec, wanted: str) -> None:
    create_topic(talk, "a", config={"compression.type": wanted})
    sent = batch(20, codec=codec, producer=(5, 0, 0))
    produce(talk, "a", sent)
    content = fetch(talk, "a").records
    header = parse_header(content)
    verify(content, header)
    assert header.codec == (Codec.NONE if wanted == "uncompressed" else Codec[wanted.upper()])
    assert (header.producer_id, header.base_sequence, header.record_count) == (5, 0, 20)
    assert read(content) == read(bytes(sent))


def test_the_producer_s_codec_is_left_alone(talk: Dialogue) -> None:
    create_topic(talk, "a")
    sent = batch(20, codec=Codec.SNAPPY)
    produce(talk, "a", sent)
    assert fetch(talk, "a").records[17:] == sent[17:]


def test_levels_of_compression_are_minded(talk: Dialogue) -> None:
    sizes = []
    for name, level in (("fast", "1"), ("small", "9")):
        config = {"compression.type": "gzip", "compression.gzip.level": level}
        create_topic(talk, name, config=config)
        text = b"".join(b"line %d of a text; " % (number * number) for number in range(2000))
        produce(talk, name, batch(value=text))
        sizes.append(len(fetch(talk, name).records))
    assert sizes[0] > sizes[1]
