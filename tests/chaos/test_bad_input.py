"""Tests invalid input: only its connection is closed, and other clients are served."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.records import Record
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient, frame_of, framed, pipelined
from barnabas.testing.waiting import eventually
from tests.support.loads.load import create_topic
from tests.support.talk import raw_requests

pytestmark = pytest.mark.chaos

MIB = 1 << 20
CLOSED = "closed a connection"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerSubprocess]:
    settings = {"performance.request_stall_time": "1s", "performance.max_request_size": "8MB"}
    data: Path = tmp_path_factory.mktemp("bad-input")
    with BrokerSubprocess(data, settings=settings) as broker:
        create_topic(broker.bootstrap, "big", 1)
        with RawClient(broker.address) as client:
            for _ in range(20):
                assert produce(client, bytes(MIB - 1000)) == ErrorCode.NONE
        yield broker


@pytest.fixture
def witness(broker: BrokerSubprocess) -> Iterator[RawClient]:
    """Another client, which must be served before and after."""
    with RawClient(broker.address) as client:
        assert is_served(client)
        yield client
        assert is_served(client)
        assert broker.log_lines("a request failed") == []
        assert broker.log_lines("an event failed") == []


def is_served(client: RawClient) -> bool:
    return client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def produce(client: RawClient, value: bytes) -> int:
    record = Record(0, time.time_ns() // 1_000_000, None, value)
    return raw_requests.produce(client, "big", [record])


def fetch_request(max_wait_ms: int = 0, offset: int = 0) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=50 * MIB)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=50 * MIB,
        topics=[FetchTopic(topic="big", partitions=[wanted])],
    )


def closed_for(broker: BrokerSubprocess, content: bytes) -> str:
    """Send bytes; check that the connection is closed and return why."""
    known = len(broker.log_lines(CLOSED))
    with RawClient(broker.address) as client:
        client.send(content)
        assert client.was_closed()
    lines = broker.wait_for_log(CLOSED, known + 1)
    return str(lines[-1]["problem"])


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 7, 8 * MIB + 1, 2**31 - 1])
@pytest.mark.parametrize("rest", [b"", b"\0", bytes(100)])
def test_a_length_that_cannot_be(
    broker: BrokerSubprocess, witness: RawClient, length: int, rest: bytes
) -> None:
    memory = broker.memory_bytes()
    assert f"frame length {length} is not" in closed_for(broker, pack(">i", length) + rest)
    assert broker.memory_bytes() < memory + 16 * MIB


def test_a_length_that_comes_byte_by_byte(broker: BrokerSubprocess, witness: RawClient) -> None:
    with RawClient(broker.address) as client:
        for byte in pack(">i", -1):
            client.send(bytes([byte]))
        assert client.was_closed()


def test_only_produce_may_be_large(tmp_path: Path) -> None:
    with BrokerSubprocess(tmp_path) as broker:
        for rest in (b"\0\x03\0\x09", b"\0"):  # the API key at once, or cut in two
            with RawClient(broker.address) as client:
                client.send(pack(">i", 64 * MIB) + rest)
                if len(rest) == 1:
                    client.send(b"\x03")
                assert client.was_closed()
        lines = broker.wait_for_log(CLOSED, 2)
        assert all("carries no records" in line["problem"] for line in lines)


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)) * 64,
        framed(b"\xff" * 40),
    ],
    ids=["all bytes", "ones"],
)
def test_garbage(broker: BrokerSubprocess, witness: RawClient, content: bytes) -> None:
    assert closed_for(broker, content)


@pytest.mark.parametrize("key", [-1, 4, ApiKey.PUSH_TELEMETRY, 999, 32767])
def test_an_api_that_is_not_served(broker: BrokerSubprocess, witness: RawClient, key: int) -> None:
    assert closed_for(broker, framed(pack(">hhih", key, 0, 1, -1)))


@pytest.mark.parametrize("version", [-1, 99, 32767])
@pytest.mark.parametrize(
    "key", [ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.CREATE_TOPICS]
)
def test_a_version_that_is_not_served(
    broker: BrokerSubprocess, witness: RawClient, key: int, version: int
) -> None:
    problem = closed_for(broker, framed(pack(">hhihx", key, version, 1, -1)))
    assert APIS[key].name in problem


def test_a_version_of_api_versions_that_is_not_served(
    broker: BrokerSubprocess, witness: RawClient
) -> None:
    with RawClient(broker.address) as client:
        client.send(framed(pack(">hhih", ApiKey.API_VERSIONS, 99, 1, -1) + b"\0\0\0"))
        answer = client.receive(ApiVersionsResponse, 0)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert is_served(client)


def test_requests_before_a_bad_one_are_answered(broker: BrokerSubprocess) -> None:
    with RawClient(broker.address) as client:
        client.send(pipelined([(ApiVersionsRequest(), 0)]) + framed(b"\xff" * 40))
        assert client.receive(ApiVersionsResponse, 0).error_code == 0
        assert client.was_closed()


def test_a_request_that_stops_half_way(broker: BrokerSubprocess, witness: RawClient) -> None:
    whole = framed(frame_of(MetadataRequest(), 9))
    for content in (whole[:3], whole[:-1]):
        assert "stalled" in closed_for(broker, content)


def test_a_request_byte_by_byte_is_answered(broker: BrokerSubprocess, witness: RawClient) -> None:
    with RawClient(broker.address) as client:
        for byte in framed(frame_of(ApiVersionsRequest(), 0)):
            client.send(bytes([byte]))
        assert client.receive(ApiVersionsResponse, 0).error_code == 0


def test_a_request_that_trickles_is_given_up(broker: BrokerSubprocess, witness: RawClient) -> None:
    """Each byte is progress, but a frame still has a deadline."""
    with RawClient(broker.address) as client:
        client.send(pack(">i", 1000))

        def closed() -> bool:
            try:
                client.send(b"\0")
            except ConnectionError:
                return True
            return False

        eventually(closed)


def test_a_client_that_does_not_read(broker: BrokerSubprocess, witness: RawClient) -> None:
    memory, known = broker.memory_bytes(), len(broker.log_lines(CLOSED))
    with contextlib.ExitStack() as clients:
        for _ in range(20):
            client = clients.enter_context(RawClient(broker.address))
            client.send(pipelined([(fetch_request(), 11)] * 100))  # 2 GB of responses
        assert is_served(witness)
        assert broker.memory_bytes() < memory + 32 * MIB
        lines = broker.wait_for_log(CLOSED, known + 20)
        assert broker.memory_bytes() < memory + 32 * MIB
    assert all("stalled" in line["problem"] for line in lines[known:])


def test_small_questions_with_large_answers(tmp_path: Path) -> None:
    """A quarter of a megabyte of requests must not become a gigabyte of responses in memory."""
    with BrokerSubprocess(tmp_path) as broker, RawClient(broker.address) as client:
        create_topic(broker.bootstrap, "wide", 2000)
        memory = broker.memory_bytes()
        client.send(pipelined([(MetadataRequest(topics=None), 4)] * 5000))
        with RawClient(broker.address) as other:
            assert is_served(other)
        assert broker.memory_bytes() < memory + 64 * MIB
        for number in range(300):  # queued requests are answered in order, once there is room
            assert client.receive_frame()[:4] == pack(">i", number)


def test_a_thousand_requests_in_one_go(broker: BrokerSubprocess, witness: RawClient) -> None:
    asked: list[tuple[Message, int]] = [(ApiVersionsRequest(), 0), (MetadataRequest(topics=[]), 9)]
    with RawClient(broker.address) as client:
        client.send(pipelined(asked * 500))
        for number in range(1000):
            assert client.receive_frame()[:4] == pack(">i", number)


def test_answers_keep_their_order_behind_one_that_waits(broker: BrokerSubprocess) -> None:
    waiting = fetch_request(max_wait_ms=300, offset=20)
    with RawClient(broker.address) as client:
        client.send(pipelined([(waiting, 11), *[(ApiVersionsRequest(), 0)] * 1500]))
        for number in range(1501):
            assert client.receive_frame()[:4] == pack(">i", number)


def test_a_reset_in_the_middle_of_an_answer(broker: BrokerSubprocess, witness: RawClient) -> None:
    for _ in range(10):
        client = RawClient(broker.address)
        client.send_request(fetch_request(), 11)
        assert client.socket.recv(1000)
        client.reset()
        assert is_served(witness)


def test_a_reset_while_an_answer_waits(broker: BrokerSubprocess, witness: RawClient) -> None:
    for _ in range(10):
        client = RawClient(broker.address)
        client.send_request(fetch_request(max_wait_ms=2**31 - 1, offset=20), 11)
        client.reset()
    assert is_served(witness)


COUNTED_VERSIONS = {
    ApiKey.PRODUCE: 3,
    ApiKey.FETCH: 4,
    ApiKey.LIST_OFFSETS: 1,
    ApiKey.METADATA: 1,
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.CREATE_PARTITIONS: 0,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 0,
}
"""The version of each request whose count is wrong."""
FIXED_BYTES = {ApiKey.PRODUCE: 8, ApiKey.FETCH: 17, ApiKey.LIST_OFFSETS: 4}
"""The bytes between the header and the count."""


@pytest.mark.parametrize("count", [-2, 2**16, 2**31 - 1])
@pytest.mark.parametrize(
    "key",
    [
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ],
)
def test_a_count_that_cannot_be(
    broker: BrokerSubprocess, witness: RawClient, key: ApiKey, count: int
) -> None:
    """For every place of the count, there are not that many elements after it."""
    fixed = FIXED_BYTES.get(key, 0)
    memory = broker.memory_bytes()
    head = pack(">hhih", key, COUNTED_VERSIONS[key], 1, -1) + b"\xff\xff" * (key == ApiKey.PRODUCE)
    frame = head + bytes(fixed - 2 * (key == ApiKey.PRODUCE)) + pack(">i", count) + bytes(12)
    with RawClient(broker.address) as client, contextlib.suppress(EOFError, ConnectionError):
        client.send(framed(frame))
        client.send_request(ApiVersionsRequest(), 0)
        client.receive_frame()  # of either request, or none: the connection is closed
    assert broker.memory_bytes() < memory + 16 * MIB


def test_many_topics_of_the_same_name(broker: BrokerSubprocess, witness: RawClient) -> None:
    """They are refused in no more time than it takes to read them."""
    count = 100_000
    entry = b"\0\x01t" + pack(">ihii", 1, 1, 0, 0)
    header = pack(">hhih", ApiKey.CREATE_TOPICS, 2, 1, -1)
    frame = header + pack(">i", count) + entry * count + pack(">ib", 1000, 0)
    with RawClient(broker.address) as client:
        client.send(framed(frame))
        assert client.receive_frame()
    assert not (broker.data / "topics" / "t").exists()


def test_an_unknown_topic_of_an_enormous_name(broker: BrokerSubprocess, witness: RawClient) -> None:
    topic = MetadataRequestTopic(name="\x01" * 30_000)
    with RawClient(broker.address) as client:
        client.send_request(MetadataRequest(topics=[topic]), 4)
        assert client.receive_frame()
