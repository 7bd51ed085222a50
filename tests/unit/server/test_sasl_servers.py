"""SASL listeners with real sockets: one broker and a cluster of three."""

import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from struct import Struct

import pytest

from barnabas.admin.access import users
from barnabas.model.security_settings import SecuritySettings
from barnabas.protocol.codec import decode_exact
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.testing.waiting import eventually
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.link import Link
from barnabas.wire.wire_failures import LinkError
from tests.support.security.sasl_broker import SaslBroker, properties, sasl_cluster
from tests.support.talk.one_connection import Asked

PATIENCE_S = 30
LENGTH = Struct(">i")
HEADER_BYTES = 4


def connect(broker: SaslBroker) -> socket.socket:
    host, _, port = broker.bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def received(client: socket.socket) -> bytes:
    """Return everything up to the end of the connection."""
    content = bytearray()
    while part := client.recv(4096):
        content += part
    return bytes(content)


def served(broker: SaslBroker, user: str, password: str) -> bool:
    try:
        with Wire(properties(broker.bootstrap, "PLAIN", user, password)) as wire:
            return bool(wire.metadata().brokers)
    except LinkError:
        return False


@pytest.fixture(scope="module")
def broker() -> Iterator[SaslBroker]:
    security = SecuritySettings(handshake_timeout_ms=300, failed_authentication_delay_ms=20)
    settings = {"performance.slow_event_time": "10s"}
    with SaslBroker(security=security, settings=settings) as running:
        yield running


def is_refused(broker: SaslBroker, user: str, password: str) -> bool:
    return not served(broker, user, password)


def has_brokers(wire: Wire, count: int) -> bool:
    return len(wire.metadata().brokers) == count


class TestOneBroker:
    def test_a_client_that_says_nothing_is_closed(self, broker: SaslBroker) -> None:
        with connect(broker) as client:
            assert received(client) == b""

    def test_a_client_that_says_half_of_something_is_closed(self, broker: SaslBroker) -> None:
        content = Asked(SaslHandshakeRequest(mechanism="PLAIN"), 1).frame(1)
        with connect(broker) as client:
            client.sendall(content + content[:9])
            assert len(received(client)) > 4

    def test_a_client_that_fails_reads_the_answer_and_then_the_end(
        self, broker: SaslBroker
    ) -> None:
        """Even one that has sent more, which the broker never reads."""
        handshake = Asked(SaslHandshakeRequest(mechanism="PLAIN"), 1).frame(1)
        token = Asked(SaslAuthenticateRequest(auth_bytes=b"\0admin\0wrong"), 1).frame(2)
        with connect(broker) as client:
            client.sendall(handshake + token + bytes(100_000))
            content = received(client)
        (size,) = LENGTH.unpack(content[:4])
        answer = content[4 + size + 4 :]
        found = decode_exact(SaslAuthenticateResponse, 1, answer, HEADER_BYTES)
        assert found.error_code == 58

    def test_events_are_timed_with_a_login_too(self, broker: SaslBroker) -> None:
        """The session that times requests stays in front of the one that serves."""
        with Wire(properties(broker.bootstrap)) as wire:
            assert wire.metadata().brokers

    def test_another_protocol(self, broker: SaslBroker) -> None:
        with connect(broker) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert received(client).startswith(b"HTTP/1.1 400")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SaslBroker]]:
    with sasl_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def controller_of(broker: SaslBroker) -> int:
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    with Wire(properties(broker.bootstrap)) as wire:
        answer = wire.ask_any(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)
    return answer.topics[0].partitions[0].leader_id


class TestCluster:
    def test_the_first_admin_logs_in_everywhere(self, cluster: list[SaslBroker]) -> None:
        for broker in cluster:
            with Wire(properties(broker.bootstrap)) as wire:
                assert [user.name for user in users.users(wire)] == ["admin"]
                eventually(partial(has_brokers, wire, 3))

    def test_every_broker_takes_changes(self, cluster: list[SaslBroker]) -> None:
        """Those that are not the controller pass them on."""
        for number, broker in enumerate(cluster):
            with Wire(properties(broker.bootstrap)) as wire:
                users.set_password(wire, f"user-{number}", "secret", ["SCRAM-SHA-256"])
        for broker in cluster:
            for number in range(3):
                eventually(partial(served, broker, f"user-{number}", "secret"))
        with Wire(properties(cluster[0].bootstrap)) as wire:
            for number in range(3):
                users.delete(wire, f"user-{number}", ["SCRAM-SHA-256"])
        for broker in cluster:
            eventually(partial(is_refused, broker, "user-0", "secret"))

    def test_an_unknown_user_looks_the_same_everywhere(self, cluster: list[SaslBroker]) -> None:
        """All brokers make its salt from one secret."""

        salts = set()
        for broker in cluster:
            host, _, port = broker.bootstrap.rpartition(":")
            link = Link(host, int(port))
            with contextlib.closing(link):
                link.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), SaslHandshakeResponse)
                request = SaslAuthenticateRequest(auth_bytes=b"n,,n=mallory,r=nonce")
                answer = link.ask(request, SaslAuthenticateResponse)
                salts.add(bytes(answer.auth_bytes).split(b",")[1])
        assert len(salts) == 1

    def test_users_survive_the_controller(self, cluster: list[SaslBroker]) -> None:
        lost = controller_of(cluster[0])
        left = [broker for number, broker in enumerate(cluster, 1) if number != lost]
        with Wire(properties(left[0].bootstrap)) as wire:
            users.set_password(wire, "late", "secret", ["SCRAM-SHA-512"])
        cluster[lost - 1].stop()
        for broker in left:
            eventually(partial(served, broker, "late", "secret"))
        with Wire(properties(left[0].bootstrap)) as wire:
            users.set_password(wire, "later", "secret", ["SCRAM-SHA-512"])
        eventually(partial(served, left[1], "later", "secret"))
