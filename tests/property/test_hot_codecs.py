"""Tests that the hand-written codecs of Produce and Fetch agree with the generated ones."""

from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.model.errors import WireError
from barnabas.model.ports import FileSlice
from barnabas.protocol import fetch, produce, replica_fetch_codec
from barnabas.protocol.codec import decoder, encoder
from barnabas.protocol.current_leader import Endpoint, Leader
from barnabas.protocol.messages import fetch as fetch_messages
from barnabas.protocol.messages import produce as produce_messages
from tests.support.examples import examples
from tests.support.talk.random_messages import random_message

several = settings(
    max_examples=examples(20),
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
    for topic in message.responses:
        for result in topic.partition_responses:
            for error in result.record_errors:  # each says what is wrong
                error.batch_index_error_message = error.batch_index_error_message or "wrong"
            if result.record_errors:  # and so does the batch
                result.error_message = result.error_message or "refused"
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
                    leader_in(r.current_leader),
                    [(e.batch_index, e.batch_index_error_message or "") for e in r.record_errors],
                )
                for r in topic.partition_responses
            ],
        )
        for topic in message.responses
    ]
    endpoints = endpoints_in(message.node_endpoints)
    written = produce.encode_response(version, topics, message.throttle_time_ms, endpoints)
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
    named = version <= fetch.REPLICA_ID_UNTIL
    assert found == fetch.FetchRequest(
        message.replica_id if named else message.replica_state.replica_id,
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
                        p.high_watermark,
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
        message.replica_state.replica_epoch,
    )


@several
@given(rng=randoms)
def test_followers_write_requests_that_are_read_alike(rng: Random) -> None:
    message = random_message(fetch_messages.FetchRequest, replica_fetch_codec.VERSION, rng)
    assert isinstance(message, fetch_messages.FetchRequest)
    encoded = encoder(fetch_messages.FetchRequest, replica_fetch_codec.VERSION)(message)
    request = fetch.parse_request(replica_fetch_codec.VERSION, memoryview(encoded), 0)
    request = request._replace(replica_id=3, replica_epoch=rng.getrandbits(60))
    body = replica_fetch_codec.encode_request(request)
    again, end = decoder(fetch_messages.FetchRequest, replica_fetch_codec.VERSION)(body, 0)
    assert end == len(body)
    assert again.replica_state.replica_epoch == request.replica_epoch
    assert fetch.parse_request(replica_fetch_codec.VERSION, memoryview(body), 0) == request


@several
@given(rng=randoms)
def test_followers_read_answers_alike(rng: Random) -> None:
    message = random_message(fetch_messages.FetchResponse, replica_fetch_codec.VERSION, rng)
    assert isinstance(message, fetch_messages.FetchResponse)
    body = encoder(fetch_messages.FetchResponse, replica_fetch_codec.VERSION)(message)
    found = replica_fetch_codec.parse_response(memoryview(body))
    assert (found.error_code, found.session_id) == (message.error_code, message.session_id)
    assert [result._replace(records=memoryview(b"")) for result in found.results] == [
        replica_fetch_codec.Copied(
            topic.topic_id,
            r.partition_index,
            r.error_code,
            r.high_watermark,
            r.log_start_offset,
            memoryview(b""),
            diverging_in(r.diverging_epoch),
            leader_in(r.current_leader),
        )
        for topic in message.responses
        for r in topic.partitions
    ]
    stored = [bytes(r.records or b"") for topic in message.responses for r in topic.partitions]
    assert [bytes(result.records) for result in found.results] == stored


@several
@given(rng=randoms)
def test_answers_that_are_cut_short_are_refused(rng: Random) -> None:
    message = random_message(fetch_messages.FetchResponse, replica_fetch_codec.VERSION, rng)
    body = encoder(fetch_messages.FetchResponse, replica_fetch_codec.VERSION)(cast("Any", message))
    with pytest.raises(WireError):
        replica_fetch_codec.parse_response(memoryview(body)[: rng.randrange(len(body))])


@every_fetch
@several
@given(rng=randoms)
def test_fetch_answers_are_written_alike(version: int, rng: Random) -> None:
    message = random_message(fetch_messages.FetchResponse, version, rng)
    assert isinstance(message, fetch_messages.FetchResponse)
    by_id = version >= fetch.TOPIC_IDS_FROM
    for topic in message.responses:
        for result in topic.partitions:
            result.snapshot_id = fetch_messages.SnapshotId()  # only used for the metadata log
            result.records = result.records or b""  # never null: librdkafka cannot read it
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
        endpoints=endpoints_in(message.node_endpoints),
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
        diverging_in(result.diverging_epoch),
        leader_in(result.current_leader),
        result.preferred_read_replica,
    )


def diverging_in(told: fetch_messages.EpochEndOffset) -> fetch.Diverging | None:
    found = fetch.Diverging(told.epoch, told.end_offset)
    return None if found == (-1, -1) else found


def leader_in(
    told: fetch_messages.LeaderIdAndEpoch | produce_messages.LeaderIdAndEpoch,
) -> Leader | None:
    found = Leader(told.leader_id, told.leader_epoch)
    return None if found == (-1, -1) else found


def endpoints_in(
    told: list[fetch_messages.NodeEndpoint] | list[produce_messages.NodeEndpoint],
) -> list[Endpoint]:
    return [Endpoint(each.node_id, each.host, each.port, each.rack) for each in told]


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
