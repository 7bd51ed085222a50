"""Tests meters over real sockets: requests by API and error, and gauges."""

from collections.abc import Iterator
from functools import partial
from struct import pack

import pytest

from barnabas.app import BrokerProcess
from barnabas.handlers.response_errors import first_error
from barnabas.model.errors import ErrorCode
from barnabas.model.meters import NO_METERS
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.server import gauges
from barnabas.server.kafka_session import KafkaSession
from barnabas.server.server import Server
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient, frame_of, framed
from tests.support.meters import MemoryMeters, Total
from tests.support.talk.requests import batch, fetch_request

TOPIC = "counted"
NS_PER_S = 1_000_000_000
METADATA = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])


def produce(topic: str = TOPIC, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=bytes(batch(value=bytes(100))))
    named = TopicProduceData(name=topic, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[named])


@pytest.fixture
def meters() -> MemoryMeters:
    return MemoryMeters()


@pytest.fixture
def broker(meters: MemoryMeters, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    metered = partial(BrokerProcess, meters=meters)
    monkeypatch.setattr("barnabas.testing.broker.BrokerProcess", metered)
    with Broker() as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    host, _, port = broker.bootstrap.rpartition(":")
    with RawClient((host, int(port))) as made:
        yield made


def test_requests_are_counted_with_bytes_and_latency(
    meters: MemoryMeters, client: RawClient
) -> None:
    for _ in range(3):
        client.ask(METADATA, 12, MetadataResponse)
    for acks in (-1, -1, -1, 1, 1):  # handlers answer the first ones, the fast path the others
        client.ask(produce(acks=acks), 9, ProduceResponse)
    metadata, produced = (meters.totals[key, 0] for key in (ApiKey.METADATA, ApiKey.PRODUCE))
    assert (metadata.requests, produced.requests) == (3, 5)
    assert metadata.bytes_in == 3 * len(frame_of(METADATA, 12))
    assert produced.bytes_in == 5 * len(frame_of(produce(), 9))
    assert metadata.bytes_out > 3 * len(TOPIC)
    assert produced.bytes_out % 5 == 0, "all responses are the same"
    assert produced.bytes_out > 5 * len(TOPIC)
    assert 0 < metadata.latency_ns < 30 * NS_PER_S
    assert 0 < produced.latency_ns < 30 * NS_PER_S


def test_answers_have_the_size_that_the_client_receives(
    meters: MemoryMeters, client: RawClient
) -> None:
    client.send_request(METADATA, 12)
    frame = client.receive_frame()
    assert meters.totals[ApiKey.METADATA, 0].bytes_out == len(frame)


def test_errors_are_counted_apart(meters: MemoryMeters, client: RawClient) -> None:
    client.ask(METADATA, 12, MetadataResponse)
    client.ask(produce(), 9, ProduceResponse)
    client.ask(produce("unknown"), 9, ProduceResponse)
    unknown = meters.totals[ApiKey.PRODUCE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert (meters.totals[ApiKey.PRODUCE, 0].requests, unknown.requests) == (1, 1)


def test_a_request_that_closes_the_connection_is_counted(
    meters: MemoryMeters, client: RawClient
) -> None:
    client.send(framed(pack(">hhihx", ApiKey.METADATA, 99, 1, -1)))
    assert client.was_closed()
    assert meters.totals[ApiKey.METADATA, ErrorCode.INVALID_REQUEST].requests == 1


def test_a_request_without_answer_is_counted(meters: MemoryMeters, client: RawClient) -> None:
    client.ask(METADATA, 12, MetadataResponse)
    for _ in range(3):
        client.send_request(produce(acks=0), 9)
    client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
    total = meters.totals[ApiKey.PRODUCE, 0]
    assert (total.requests, total.bytes_out) == (3, 0)


def test_answers_behind_a_long_poll_are_counted(meters: MemoryMeters, client: RawClient) -> None:
    client.ask(METADATA, 12, MetadataResponse)
    client.send_request(fetch_request(TOPIC, max_wait_ms=2_000), 12)
    client.send_request(ApiVersionsRequest(), 0)
    sizes = [len(client.receive_frame()) for _ in range(2)]
    totals = [meters.totals[key, 0] for key in (ApiKey.FETCH, ApiKey.API_VERSIONS)]
    assert [total.requests for total in totals] == [1, 1]
    assert [total.bytes_out for total in totals] == sizes
    assert totals[0].latency_ns < NS_PER_S, "the wait that the client asked for does not count"


def test_gauges_show_queues_and_logs(meters: MemoryMeters, client: RawClient) -> None:
    client.ask(METADATA, 12, MetadataResponse)
    client.ask(produce(), 9, ProduceResponse)
    assert meters.read(gauges.CONNECTIONS) == {"": 1}
    assert meters.read(gauges.WAITING_TURNS) == {"": 0}
    assert meters.read(gauges.WAITING_SYNCS) == {"": 0}
    assert meters.read(gauges.LOG_BYTES)[f"{TOPIC}-0"] == len(batch(value=bytes(100)))


def test_without_a_collector_sessions_do_not_measure() -> None:
    with Broker() as broker:
        assert broker._process is not None
        server: Server = broker._process.server
        assert server._meters is NO_METERS
        host, _, port = broker.bootstrap.rpartition(":")
        with RawClient((host, int(port))) as client:
            client.ask(METADATA, 12, MetadataResponse)
            (connection,) = server.connections
            assert type(connection.session) is KafkaSession  # type: ignore[attr-defined]


def test_total_of_nothing() -> None:
    assert MemoryMeters().totals[ApiKey.FETCH, 0] == Total()


def test_an_answer_that_cannot_be_read_counts_as_no_error() -> None:
    assert first_error(ApiKey.METADATA, 12, [b"\0\0"]) == 0
    assert first_error(ApiKey.FETCH, 12, [b"\0\0"]) == 0
