"""Tests what a broker deletes and refuses by itself, over a socket."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsResponse,
)
from barnabas.protocol.records import Record
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.loads.load import create_topic
from tests.support.talk import raw_requests
from tests.support.talk.requests import read

HOUR_MS = 3_600_000
EARLIEST = -2
SOON = {"storage.retention_check_interval": "20ms", "storage.compaction_check_interval": "20ms"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings=SOON) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    host, _, port = broker.bootstrap.rpartition(":")
    with RawClient((host, int(port))) as client:
        yield client


def produce(client: RawClient, *records: Record) -> int:
    """Send one batch to the first partition of `orders`; return the error code."""
    return raw_requests.produce(client, "orders", records)


def earliest(client: RawClient) -> int:
    request = raw_requests.list_offsets_request("orders", EARLIEST)
    (answer,) = client.ask(request, 5, ListOffsetsResponse).topics
    return answer.partitions[0].offset


def stored(client: RawClient) -> list[bytes | None]:
    """Return the values of all remaining records."""
    start = earliest(client)
    part = FetchPartition(partition=0, fetch_offset=start, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="orders", partitions=[part])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic])
    (answer,) = client.ask(request, 11, FetchResponse).responses
    return [record.value for record in read(bytes(answer.partitions[0].records or b""))]


def test_records_without_a_timestamp_are_removed_when_their_files_are_too_old(
    broker: Broker, client: RawClient
) -> None:
    create_topic(
        broker.bootstrap, "orders", 1, {"retention.ms": str(HOUR_MS), "segment.bytes": "1024"}
    )
    for number in range(6):
        assert produce(client, Record(0, -1, None, b"%d" % number * 400)) == 0
    assert earliest(client) == 0
    long_ago_s = time.time() - 2 * HOUR_MS / 1000
    for path in Path(broker.data).glob("topics/orders/0/*.log"):
        os.utime(path, (long_ago_s, long_ago_s))
    eventually(lambda: earliest(client) == 6)
    assert produce(client, Record(0, -1, None, b"new")) == 0
    assert stored(client) == [b"new"]


def test_what_must_be_compacted_by_now_is_though_its_segment_is_not_full(
    broker: Broker, client: RawClient
) -> None:
    config = {"cleanup.policy": "compact", "max.compaction.lag.ms": "1"}
    create_topic(broker.bootstrap, "orders", 1, config)
    now_ms = time.time_ns() // 1_000_000
    for value in (b"first", b"second", None):
        assert produce(client, Record(0, now_ms, b"key", value)) == 0
    eventually(lambda: stored(client) == [None])


def test_a_batch_larger_than_a_segment_is_refused(broker: Broker, client: RawClient) -> None:
    create_topic(broker.bootstrap, "orders", 1, {"segment.bytes": "1024"})
    now_ms = time.time_ns() // 1_000_000
    too_large = Record(0, now_ms, None, bytes(1024))
    assert produce(client, too_large) == ErrorCode.RECORD_LIST_TOO_LARGE
    assert produce(client, Record(0, now_ms, None, bytes(900))) == 0
    assert stored(client) == [bytes(900)]
