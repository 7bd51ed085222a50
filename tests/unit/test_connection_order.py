"""Tests what only a socket shows: order of responses, pauses (KIP-219), and closed connections."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.handlers import registry
from barnabas.model.errors import ErrorCode
from barnabas.protocol.apis import APIS, KEYS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import response_header
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.testing.broker import Broker
from tests.support.talk.offset_requests import codes, commit_request
from tests.support.talk.requests import batch, fetch_request
from tests.support.talk.rows import row_of

PATIENCE_S = 20
A_MOMENT_S = 0.2
"""Long enough for a response that must not come; the pauses in question are far longer."""


class Peer:
    """A client that sends frames without waiting for responses."""

    def __init__(self, broker: Broker, client_id: str = "peer") -> None:
        host, port = broker.bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self._client_id = client_id
        self._asked: list[tuple[int, int, int]] = []
        self._number = 0

    def send(self, request: Message, version: int) -> None:
        key = KEYS[type(request).__name__]
        self._number += 1
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._number,
            client_id=self._client_id,
        )
        head = encoder(RequestHeader, 2 if version >= APIS[key].flexible_from else 1)(header)
        frame = head + encoder(type(request), version)(request)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        self._asked.append((key, version, self._number))

    def receive(self) -> Any:
        key, version, number = self._asked.pop(0)
        (size,) = struct.unpack(">i", self._read(4))
        content = self._read(size)
        head = response_header(key, version, number)
        assert content.startswith(head), "responses are out of order"
        return decode_exact(response_class(key), version, content[len(head) :])

    def ask(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return self.receive()

    def gets_no_response(self) -> bool:
        self._socket.settimeout(A_MOMENT_S)
        try:
            self._socket.recv(1)
        except TimeoutError:
            return True
        else:
            return False
        finally:
            self._socket.settimeout(PATIENCE_S)

    def is_closed(self) -> bool:
        with contextlib.suppress(ConnectionError):
            return self._socket.recv(1) == b""
        return True

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            part = self._socket.recv(size - len(content))
            assert part, "the broker closed the connection"
            content += part
        return content


@pytest.fixture
def broker() -> Iterator[Broker]:
    quotas = {"performance.producer_quota": "1KB", "performance.consumer_quota": "1KB"}
    patience = {"groups.heartbeat_wait": "10m"}
    with Broker(settings={**quotas, **patience}) as running:
        yield running


@pytest.fixture
def peers(broker: Broker) -> Iterator[tuple[Peer, Peer]]:
    first, second = Peer(broker, "first"), Peer(broker, "second")
    second.ask(MetadataRequest(topics=[MetadataRequestTopic(name="a")]), 12)
    yield first, second
    first.close()
    second.close()


def produce_request(size: int, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=bytes(batch(value=bytes(size))))
    topic = TopicProduceData(name="a", partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[topic])


hello = ApiVersionsRequest(client_software_name="peer", client_software_version="1")


def test_answers_keep_the_order_of_the_requests(peers: tuple[Peer, Peer]) -> None:
    first, second = peers
    first.send(fetch_request("a", max_wait_ms=60_000), 12)
    first.send(hello, 3)
    assert first.gets_no_response(), "a quick response overtook a slow one"
    second.ask(produce_request(10), 9)
    (topic,) = first.receive().responses
    assert topic.partitions[0].high_watermark == 1
    assert first.receive().error_code == 0


def test_a_producer_is_answered_at_once_and_then_not_read(peers: tuple[Peer, Peer]) -> None:
    first, second = peers
    answer = first.ask(produce_request(500_000), 9)
    assert answer.throttle_time_ms > 100_000
    assert answer.responses[0].partition_responses[0].error_code == 0
    first.send(hello, 3)
    assert first.gets_no_response()
    assert second.ask(hello, 3).error_code == 0, "other clients do not wait"


def test_a_producer_without_answers_is_not_read_either(peers: tuple[Peer, Peer]) -> None:
    first, _ = peers
    first.send(produce_request(500_000, acks=0), 9)
    first.send(hello, 3)
    assert first.gets_no_response()


def test_a_consumer_that_waited_is_paused_too(peers: tuple[Peer, Peer]) -> None:
    first, second = peers
    first.send(fetch_request("a", max_wait_ms=60_000), 12)
    second.send(produce_request(500_000), 9)
    assert first.receive().throttle_time_ms > 100_000
    first.send(hello, 3)
    assert first.gets_no_response()


def test_a_defect_closes_one_connection(
    peers: tuple[Peer, Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a mistake")

    monkeypatch.setitem(registry.SERVED, 60, row_of(60, 0, 2, broken))
    first, second = peers
    first.send(DescribeClusterRequest(), 2)
    assert first.is_closed()
    assert second.ask(hello, 3).error_code == 0


def test_what_was_asked_before_a_mistake_is_answered(peers: tuple[Peer, Peer]) -> None:
    first, _ = peers
    first.send(hello, 3)
    first._socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert first.receive().error_code == 0
    assert first.is_closed()


def test_bytes_that_are_no_request_close_the_connection(peers: tuple[Peer, Peer]) -> None:
    first, second = peers
    first._socket.sendall(b"\xff" * 16)
    assert first.is_closed()
    assert second.ask(hello, 3).error_code == 0


def join_request(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="readers",
        member_id=member_id,
        session_timeout_ms=600_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )


def sync(peer: Peer, joined: Any) -> None:
    request = SyncGroupRequest(
        group_id="readers", generation_id=joined.generation_id, member_id=joined.member_id
    )
    assert peer.ask(request, 4).error_code == 0


def join(peer: Peer) -> Any:
    """Become the only member of a group, and its leader."""
    peer.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"]), 6)
    joined = peer.ask(join_request(peer.ask(join_request(), 9).member_id), 9)
    assert joined.error_code == 0
    sync(peer, joined)
    return joined


def commit(peer: Peer, member_id: str, generation: int, offset: int) -> int:
    request = commit_request("readers", {("a", 0): offset}, member=member_id, epoch=generation)
    (code,) = codes(peer.ask(request, 8)).values()
    return code


def test_a_member_that_joined_again_commits_what_it_still_owns(broker: Broker) -> None:
    """A cooperative consumer that closes in the middle of a rebalance commits in its callback."""
    first = Peer(broker)
    first.ask(MetadataRequest(topics=[MetadataRequestTopic(name="a")]), 12)
    joined = join(first)
    second = Peer(broker)
    invited = second.ask(join_request(), 9).member_id
    second.send(join_request(invited), 9)
    assert second.gets_no_response()
    again = first.ask(join_request(joined.member_id), 9)
    newcomer = second.receive()
    assert again.generation_id == newcomer.generation_id == joined.generation_id + 1
    # The assignments of the new generation were not sent: no partition has another owner yet.
    assert commit(first, joined.member_id, joined.generation_id, 1) == 0
    assert commit(first, joined.member_id, again.generation_id, 2) == 0
    refused = commit(second, invited, newcomer.generation_id, 3)
    assert refused == ErrorCode.REBALANCE_IN_PROGRESS
    sync(first, again)
    refused = commit(first, joined.member_id, joined.generation_id, 4)
    assert refused == ErrorCode.ILLEGAL_GENERATION
    assert commit(first, joined.member_id, again.generation_id, 5) == 0
    first.close()
    second.close()


def test_a_waiting_heartbeat_does_not_block_later_requests(broker: Broker) -> None:
    """A member commits, or leaves, on the connection on which its heartbeat waits."""
    peer = Peer(broker)
    joined = join(peer)
    beat = HeartbeatRequest(
        group_id="readers", generation_id=joined.generation_id, member_id=joined.member_id
    )
    for _ in range(3):
        peer.send(beat, 4)
    assert [peer.receive().error_code for _ in range(2)] == [0, 0]
    assert peer.gets_no_response()
    leaver = MemberIdentity(member_id=joined.member_id)
    peer.send(LeaveGroupRequest(group_id="readers", members=[leaver]), 5)
    assert [peer.receive().error_code for _ in range(2)] == [0, 0]
    peer.close()
