"""Produce and Fetch are read and written by hand; the generated codecs must agree on every byte."""

from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.model.errors import WireError
from barnabas.model.ports import FileSlice
from barnabas.protocol import fetch, produce
from barnabas.protocol.codec import decoder, encoder
from barnabas.protocol.messages import fetch as fetch_messages
from barnabas.protocol.messages import produce as produce_messages
from barnabas.testing.random_messages import random_message

several = settings(
    max_examples=20,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
randoms = st.randoms(use_true_random=False)
every_produce = pytest.mark.parametrize("version", range(3, 14))
every_fetch = pytest.mark.parametrize("version", range(4, 19))
HEAD = b"head"


class Content:
    """A file that lies in memory."""

    path = ""

    def __init__(self, content: bytes) -> None:
        self.content = content


def joined(chunks: list[Any]) -> bytes:
    parts = [
        cast("Content", c.file).content[c.position : c.position + c.length]
        if isinstance(c, FileSlice)
        else c
        for c in chunks
    ]
    return b"".join(parts)


@every_produce
@several
@given(rng=randoms)
def test_produce_requests_are_read_alike(version: int, rng: Random) -> None:
    message = random_message(produce_messages.ProduceRequest, version, rng)
    assert isinstance(message, produce_messages.ProduceRequest)
    encoded = encoder(produce_messages.ProduceRequest, version)(message)
    found = produce.parse_request(version, memoryview(bytearray(HEAD + encoded)), len(HEAD))
    by_id = version >= produce.TOPIC_IDS_FROM
    assert (found.transactional_id, found.acks, found.timeout_ms) == (
        message.transactional_id,
        message.acks,
        message.timeout_ms,
    )
    assert [(t.key, [(i, r and bytes(r)) for i, r in t.partitions]) for t in found.topics] == [
        (t.topic_id if by_id else t.name, [(p.index, p.records) for p in t.partition_data])
        for t in message.topic_data
    ]


@every_produce
@several
@given(rng=randoms)
def test_produce_answers_are_written_alike(version: int, rng: Random) -> None:
    message = random_message(produce_messages.ProduceResponse, version, rng)
    assert isinstance(message, produce_messages.ProduceResponse)
    by_id = version >= produce.TOPIC_IDS_FROM
    message.node_endpoints = []
    for topic in message.responses:
        for result in topic.partition_responses:
            # What is only said of batches that fell in part, or of leaders that moved.
            result.record_errors = []
            result.current_leader = produce_messages.LeaderIdAndEpoch()
    topics = [
        (
            topic.topic_id if by_id else topic.name,
            [
                produce.PartitionResult(
                    r.index,
                    r.error_code,
                    r.base_offset,
                    r.log_append_time_ms,
                    r.log_start_offset,
                    r.error_message,
                )
                for r in topic.partition_responses
            ],
        )
        for topic in message.responses
    ]
    written = produce.encode_response(version, topics, message.throttle_time_ms)
    assert written == encoder(produce_messages.ProduceResponse, version)(message)


@every_fetch
@several
@given(rng=randoms)
def test_fetch_requests_are_read_alike(version: int, rng: Random) -> None:
    message = random_message(fetch_messages.FetchRequest, version, rng)
    assert isinstance(message, fetch_messages.FetchRequest)
    encoded = encoder(fetch_messages.FetchRequest, version)(message)
    found = fetch.parse_request(version, memoryview(HEAD + encoded), len(HEAD))
    by_id = version >= fetch.TOPIC_IDS_FROM
    assert found == fetch.FetchRequest(
        message.replica_id if version <= fetch.REPLICA_ID_UNTIL else -1,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        [
            (
                topic.topic_id if by_id else topic.topic,
                [
                    fetch.FetchPartition(
                        p.partition,
                        p.current_leader_epoch,
                        p.fetch_offset,
                        p.last_fetched_epoch,
                        p.log_start_offset,
                        p.partition_max_bytes,
                    )
                    for p in topic.partitions
                ],
            )
            for topic in message.topics
        ],
        [
            (topic.topic_id if by_id else topic.topic, topic.partitions)
            for topic in message.forgotten_topics_data
        ],
        message.rack_id,
    )


@every_fetch
@several
@given(rng=randoms)
def test_fetch_answers_are_written_alike(version: int, rng: Random) -> None:
    message = random_message(fetch_messages.FetchResponse, version, rng)
    assert isinstance(message, fetch_messages.FetchResponse)
    by_id = version >= fetch.TOPIC_IDS_FROM
    message.node_endpoints = []
    for topic in message.responses:
        for result in topic.partitions:
            # What is only said of followers, of leaders that moved and of snapshots.
            result.diverging_epoch = fetch_messages.EpochEndOffset()
            result.current_leader = fetch_messages.LeaderIdAndEpoch()
            result.snapshot_id = fetch_messages.SnapshotId()
            result.preferred_read_replica = -1
            result.records = result.records or b""  # never null: librdkafka minds
    topics = [
        (topic.topic_id if by_id else topic.topic, [told(r) for r in topic.partitions])
        for topic in message.responses
    ]
    chunks = fetch.encode_response(
        version,
        topics,
        throttle_ms=message.throttle_time_ms,
        error_code=message.error_code,
        session_id=message.session_id,
    )
    assert joined(chunks) == encoder(fetch_messages.FetchResponse, version)(message)


def told(result: fetch_messages.PartitionData) -> fetch.FetchResult:
    aborted = result.aborted_transactions
    content = bytes(result.records or b"")
    slice_ = FileSlice(cast("Any", Content(b"ab" + content)), 2, len(content))
    return fetch.FetchResult(
        result.partition_index,
        result.error_code,
        result.high_watermark,
        result.last_stable_offset,
        result.log_start_offset,
        slice_ if content else None,
        None if aborted is None else tuple((a.producer_id, a.first_offset) for a in aborted),
    )


@pytest.mark.parametrize("hand", ["produce", "fetch"])
@several
@given(rng=randoms)
def test_cut_and_broken_requests_are_refused_or_read_alike(hand: str, rng: Random) -> None:
    module: Any = produce if hand == "produce" else fetch
    cls = produce_messages.ProduceRequest if hand == "produce" else fetch_messages.FetchRequest
    low, high = (3, 13) if hand == "produce" else (4, 18)
    for version in range(low, high + 1):
        encoded = bytearray(encoder(cls, version)(cast("Any", random_message(cls, version, rng))))
        for _ in range(4):
            broken = bytearray(encoded)
            if rng.randrange(2):
                del broken[rng.randrange(len(broken)) :]
            else:
                broken[rng.randrange(len(broken))] = rng.choice((0, 1, 127, 128, 255))
            assert understood(module, version, broken) or refused(cls, version, broken)


def understood(module: Any, version: int, content: bytearray) -> bool:
    try:
        module.parse_request(version, memoryview(content), 0)
    except WireError:
        return False
    return True


def refused(cls: type[Any], version: int, content: bytearray) -> bool:
    try:
        decoder(cls, version)(content, 0)
    except WireError:
        return True
    return False
