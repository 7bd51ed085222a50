"""Apache Kafka with its StandardAuthorizer, and connections to it by user name.

One node, whose clients authenticate with SASL PLAIN; every password is "x".
"""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Any

from barnabas.protocol.apis import APIS, KEYS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import response_header
from barnabas.protocol.message import Message
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.testing.free_ports import free_port
from barnabas.testing.waiting import eventually
from tests.support.loads.kafka_tools import JVM_FLAGS

USERS = ("admin", "alice", "nobody")
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
START_S = 120.0
LENGTH = Struct(">i")
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=SASL_PLAINTEXT://127.0.0.1:{clients},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={login} required {users};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
log.dirs={logs}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""
TOKEN_PROPERTIES = """\
delegation.token.secret.key=a-secret-of-all-brokers
listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT
sasl.mechanism.controller.protocol=PLAIN
listener.name.controller.plain.sasl.jaas.config={login} required \\
  username="admin" password="x" {users};
"""
"""Delegation tokens, which need a login between brokers and controllers as well."""


class UserLink:
    """A connection of one user, for one request at a time."""

    def __init__(self, port: int, user: str) -> None:

        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._socket.settimeout(30)
        self._number = 0
        try:
            self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            answer = self.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0x".encode()), 2)
            assert answer.error_code == 0, answer
        except BaseException:
            self.close()
            raise

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and return its answer."""
        key = KEYS[type(request).__name__]
        self._number += 1
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._number,
            client_id="matrix",
        )
        flexible = version >= APIS[key].flexible_from
        head = encoder(RequestHeader, 2 if flexible else 1)(header)
        body = head + encoder(type(request), version)(request)
        self._socket.sendall(LENGTH.pack(len(body)) + body)
        frame = self._receive(LENGTH.unpack(self._receive(LENGTH.size))[0])
        skipped = len(response_header(key, version, self._number))
        return decode_exact(response_class(key), version, frame[skipped:])

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _receive(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            assert part, "Kafka closed the connection"
            parts += part
        return parts


@contextmanager
def secured_kafka(folder: Path, jars: str, *, has_tokens: bool = False) -> Iterator[int]:
    """Run Kafka, perhaps with delegation tokens; give the port of its clients."""
    clients, internal, controller = (free_port() for _ in range(3))
    users = " ".join(f'user_{name}="x"' for name in USERS)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = folder / "server.properties"
    settings.write_text(
        (PROPERTIES + (TOKEN_PROPERTIES if has_tokens else "")).format(
            clients=clients,
            internal=internal,
            controller=controller,
            users=users,
            login=login,
            logs=folder / "logs",
        )
    )
    jvm = ["java", *JVM_FLAGS, "-cp", jars]
    words = ["format", "--standalone", "-t", CLUSTER_ID, "-c", str(settings)]
    subprocess.run(
        [*jvm, "kafka.tools.StorageTool", *words], check=True, capture_output=True, timeout=120
    )
    with (folder / "kafka.log").open("w") as log:
        running = subprocess.Popen(
            [*jvm, "kafka.Kafka", str(settings)], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            eventually(lambda: _answers(clients), START_S)
            yield clients
        finally:
            running.kill()
            running.wait()


def _answers(port: int) -> bool:
    try:
        UserLink(port, "admin").close()
    except (OSError, AssertionError):
        return False
    return True
