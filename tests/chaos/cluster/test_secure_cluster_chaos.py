"""Certificates, rights and quotas that change on three brokers while clients work.

`make chaos` runs more rounds and more connections than CI (`CHAOS_RELOADS`, `CHAOS_RECONNECTS`).
"""

import contextlib
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.admin.access.acl_admin import AclAdmin
from barnabas.metadata.acl_filter import AclFilter
from barnabas.model.errors import ErrorCode
from barnabas.model.permissions import Operation, ResourceType
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.testing.places import Loopback
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_security import (
    ADMIN,
    LOADED,
    MUTUAL,
    Allowed,
    ClusterSecurity,
    SecuredProcesses,
    reload_certificate,
)
from tests.support.security.reconnects import FINISHED, READY, RECONNECTED
from tests.support.security.tls_clients import SecureClient, trusting

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]

NODES = (1, 2, 3)
RELOADS = int(os.environ.get("CHAOS_RELOADS", "2"))
RECONNECTS = int(os.environ.get("CHAOS_RECONNECTS", "200"))
ALICE = "alice"
TOPIC, PARTITIONS, COPIES = "orders", 6, 3
PATIENCE_S = 120.0
PATIENT: dict[str, object] = {
    "cluster.broker_session_timeout": "9s",
    "cluster.fetch_timeout": "9s",
    "cluster.election_timeout": "9s",
}
"""Timeouts so long that a busy machine causes no failover."""
SECURITY = {"handshake_timeout": "60s", "reauthentication_time": "0ms"}
"""A client that a busy machine holds up is not refused."""
VALID_S = 15.0
FETCH_WAIT_MS = 240_000
SOCKET_S = 120.0
"""Shorter than a fetch waits: it must be answered before its wait is over."""
QUOTA_KEY = "producer_byte_rate"
QUOTA_BYTES = 20_000.0
VALUE = b"x" * 1000
PAUSE_S = 0.01
FETCH_VERSION = 12
SLOW_EVENT = "an event held up the loop"
RIGHTS = (
    Allowed(Operation.WRITE, ResourceType.TOPIC, TOPIC),
    Allowed(Operation.READ, ResourceType.TOPIC, TOPIC),
    Allowed(Operation.READ, ResourceType.GROUP, ALICE),
)

Record = Callable[[str, object], None]


class Clients:
    """A producer and a consumer that work until they are stopped, and every error that they see."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.errors: list[str] = []
        self.throttled: list[float] = []
        self.acknowledged: set[bytes] = set()
        self.read: set[bytes] = set()
        self._stop, self._done = threading.Event(), threading.Event()
        common: dict[str, Any] = {**properties, "error_cb": self._failed, "log_level": 0}
        self._producer = Producer(
            {
                **common,
                "enable.idempotence": True,
                "linger.ms": 5,
                "throttle_cb": lambda event: self.throttled.append(event.throttle_time),
            }
        )
        self._consumer = Consumer({**common, "group.id": ALICE, "auto.offset.reset": "earliest"})
        self._consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._write, self._read)
        ]

    def wait_for(self, more: int) -> None:
        """Return once a number of further records were acknowledged."""
        goal = len(self.acknowledged) + more
        eventually(lambda: len(self.acknowledged) >= goal or self.errors, PATIENCE_S)

    def finish(self) -> None:
        """Stop writing, and read everything."""
        self._stop.set()
        self._threads[0].join()
        assert self._producer.flush(PATIENCE_S) == 0
        eventually(lambda: self.acknowledged <= self.read, PATIENCE_S)

    def __enter__(self) -> "Clients":
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._done.set()
        for each in self._threads:
            each.join()
        self._consumer.close()

    def _write(self) -> None:
        for number in itertools.count():
            if self._stop.is_set():
                return
            value = b"%d " % number + VALUE
            with contextlib.suppress(BufferError):
                self._producer.produce(
                    TOPIC, value, partition=number % PARTITIONS, on_delivery=self._delivered
                )
            self._producer.poll(PAUSE_S)

    def _read(self) -> None:
        while not self._done.is_set():
            for message in self._consumer.consume(500, 0.1):
                if message.error() is None:
                    self.read.add(message.value() or b"")
                else:
                    self.errors.append(f"fetch: {message.error()}")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.add(message.value() or b"")
        else:
            self.errors.append(f"produce: {error}")

    def _failed(self, error: KafkaError) -> None:
        self.errors.append(f"{error.name()}: {error.str()}")


@contextlib.contextmanager
def secured(folder: Path, settings: Mapping[str, object] = PATIENT) -> Iterator[SecuredProcesses]:
    """Run three brokers with one topic, and a user with rights to it."""
    made = ClusterSecurity(folder, Loopback(), NODES, SECURITY)
    with SecuredProcesses(folder, made, settings=settings) as cluster:
        admin = AdminClient({**made.client(ADMIN), "log_level": 0})
        (created,) = admin.create_topics([NewTopic(TOPIC, PARTITIONS, COPIES)]).values()
        created.result(PATIENCE_S)
        made.add_user(ALICE, RIGHTS)
        cluster.wait_healthy((TOPIC,))
        yield cluster


def test_clients_do_not_notice_new_certificates(tmp_path: Path, record_property: Record) -> None:
    """Every broker gets a new certificate, by SIGHUP or because it looks at its files."""
    with secured(tmp_path) as cluster, Clients(cluster.security.client(ALICE)) as clients:
        security = cluster.security
        clients.wait_for(200)
        for number in range(RELOADS):
            before = {node: security.served(node) for node in NODES}
            for node in NODES:
                security.renew(node)
                if number % 2:
                    reload_certificate(cluster.nodes[node])
            security.wait_served(NODES)
            assert all(security.served(node) != before[node] for node in NODES)
            clients.wait_for(200)
        clients.finish()
        assert clients.errors == []
        record_property("reloads", RELOADS)
        record_property("records", len(clients.acknowledged))


def test_an_expired_certificate_fences_no_broker(tmp_path: Path) -> None:
    """The certificate of a broker expires while it runs, and a follower has to connect again.

    Clients of the broker fail, its log says why, and it stays registered. A new certificate is
    enough to heal everything.
    """
    with secured(tmp_path) as cluster:
        security = cluster.security
        # A broker that restarts cannot join while the controller's certificate has expired.
        expired = next(number for number in NODES if number != cluster.controller())
        node = cluster.nodes[expired]
        loaded = len(node.log_lines(LOADED))
        security.renew(expired, valid_s=VALID_S)
        node.wait_for_log(LOADED, loaded + 1)
        eventually(lambda: security.served(expired) == b"", PATIENCE_S)

        alone = {**security.properties(ALICE), "bootstrap.servers": security.address(expired)}
        with pytest.raises(KafkaException):
            Producer({**alone, "log_level": 0}).list_topics(TOPIC, timeout=10)
        lines = node.wait_for_log("a TLS handshake failed")
        assert any("certificate of this broker has expired" in line["problem"] for line in lines)

        led = led_by(cluster, [expired])
        follower = next(n for n in NODES if n not in (expired, cluster.controller()))
        cluster.nodes[follower].restart()
        complaint = "cannot speak TLS with another broker; compare cluster.tls_... on both"
        cluster.nodes[follower].wait_for_log(complaint)
        assert cluster.view().brokers == NODES
        assert led_by(cluster, [expired]).items() >= led.items()

        security.renew(expired)
        security.wait_served(NODES)
        cluster.wait_healthy((TOPIC,))
        assert led_by(cluster, [expired]).items() >= led.items()
        with Clients(security.client(ALICE)) as clients:
            clients.wait_for(200)
            clients.finish()


def test_a_waiting_fetch_ends_when_its_right_is_revoked(tmp_path: Path) -> None:
    """The change is made at another broker than the one at which the fetch waits."""
    with secured(tmp_path) as cluster:
        security, bob = cluster.security, "bob"
        read = Allowed(Operation.READ, ResourceType.TOPIC, TOPIC)
        security.give(bob, [read])
        context = trusting(security.certificates, security.certificates.client(bob))
        host, _, port = security.address(cluster.leader_of(TOPIC, 0), MUTUAL).rpartition(":")
        with SecureClient((host, int(port)), context) as client:
            client.socket.settimeout(SOCKET_S)
            first = client.ask(fetch(0), FETCH_VERSION, FetchResponse)
            assert error_of(first) is ErrorCode.NONE
            client.send_request(fetch(FETCH_WAIT_MS), FETCH_VERSION)
            with security.admin() as wire:
                assert AclAdmin(wire).delete(AclFilter(principal=f"User:{bob}")) == 1
            assert (
                error_of(client.receive(FetchResponse, FETCH_VERSION))
                is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )


def test_a_quota_takes_effect_and_is_lifted_under_load(
    tmp_path: Path, record_property: Record
) -> None:
    with secured(tmp_path) as cluster, Clients(cluster.security.client(ALICE)) as clients:
        security = cluster.security
        clients.wait_for(200)
        assert clients.throttled == []
        security.set_quota(ALICE, QUOTA_KEY, QUOTA_BYTES)
        eventually(lambda: max(clients.throttled, default=0.0) > 0, PATIENCE_S)
        security.remove_quota(ALICE, QUOTA_KEY)
        clients.wait_for(200)  # clients over their quota have paused
        told = len(clients.throttled)
        clients.wait_for(1000)
        assert [each for each in clients.throttled[told:] if each > 0] == []
        clients.finish()
        assert clients.errors == []
        record_property("records", len(clients.acknowledged))


def test_thousands_of_tls_clients_reconnect_in_a_failover(
    tmp_path: Path, record_property: Record
) -> None:
    """All clients of a broker that is killed connect to the others at once.

    Handshakes take turns with other events, so the other brokers keep their sessions: neither is
    fenced, and one failover does not cause the next.
    """
    settings = {"cluster.broker_session_timeout": "9s", "performance.slow_event_time": "10ms"}
    with secured(tmp_path, settings) as cluster:
        security, killed = cluster.security, cluster.leader_of(TOPIC, 0)
        security.give("crowd", ())
        files = security.certificates.client("crowd")
        others = [number for number in NODES if number != killed]
        addresses = [security.address(number, MUTUAL) for number in (killed, *others)]
        command = [sys.executable, "-m", "tests.support.security.reconnects", str(RECONNECTS)]
        words = [security.certificates.authority, *files, *addresses]
        with subprocess.Popen(
            [*command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as crowd:
            assert crowd.stdout is not None
            assert crowd.stdout.readline().split() == [READY, str(RECONNECTS)]
            before = {n: len(cluster.nodes[n].log_lines(SLOW_EVENT)) for n in others}
            led = led_by(cluster, others)
            cluster.nodes[killed].kill()
            word, count, seconds = crowd.stdout.readline().split()
            assert (word, int(count)) == (RECONNECTED, RECONNECTS)
            cluster.wait_replaced(killed)
            assert cluster.view(but=(killed,)).brokers == tuple(others)
            stalls = [
                line
                for number in others
                for line in cluster.nodes[number].log_lines(SLOW_EVENT)[before[number] :]
            ]
            # A broker that is fenced loses its partitions, to another leader or another epoch.
            assert led_by(cluster, others).items() >= led.items()
            crowd.communicate("\n", timeout=PATIENCE_S)
        assert crowd.returncode == FINISHED
        record_property("connections", RECONNECTS)
        record_property("seconds", float(seconds))
        record_property("stall_ms", max((line["duration_ms"] for line in stalls), default=0))
        record_property("stall_cpu_ms", max((line["cpu_ms"] for line in stalls), default=0))


def led_by(cluster: SecuredProcesses, leaders: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return the partitions that some brokers lead, with the leader and its epoch."""
    seen = cluster.view((TOPIC,)).partitions
    return {n: (p.leader, p.epoch) for (_, n), p in seen.items() if p.leader in leaders}


def fetch(wait_ms: int) -> FetchRequest:
    """Read the end of partition 0, and wait for a record."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
    )


def error_of(answer: FetchResponse) -> ErrorCode:
    """Return the error of the one partition."""
    return ErrorCode(answer.responses[0].partitions[0].error_code)
