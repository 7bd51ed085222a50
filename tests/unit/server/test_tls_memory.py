"""TLS connections take a part of `performance.max_buffered_size`, from their handshake on."""

import contextlib
import json
import logging
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest

from barnabas import logs
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.server.buffered_memory import BufferedMemory
from barnabas.server.server import Server
from barnabas.server.tls.tls_memory import CONNECTION_BYTES, TlsMemory
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.security.certificates import Certificates, secure
from tests.support.security.tls_clients import SecureClient, trusting

ROOM_FOR = 3
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextlib.contextmanager
def small(certificates: Certificates, **security: str) -> Iterator[Broker]:
    """Run a broker whose memory has room for three TLS connections."""
    settings = {
        "listeners.PLAINTEXT.listen": "127.0.0.1:0",
        **secure(certificates, certificates.broker()),
        "performance.max_buffered_size": ROOM_FOR * CONNECTION_BYTES + 1000,
        **{f"security.{key}": value for key, value in security.items()},
    }
    with Broker(settings=settings) as broker:
        yield broker


def server_of(broker: Broker) -> Server:
    assert broker._process is not None
    return broker._process.server


def ask(client: RawClient) -> None:
    assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def test_a_connection_waits_until_another_one_ends(certificates: Certificates) -> None:
    with small(certificates) as broker, ThreadPoolExecutor(1) as threads:
        memory, context = server_of(broker).memory, trusting(certificates)
        clients = [SecureClient(broker.listeners["SECURE"], context) for _ in range(ROOM_FOR)]
        for client in clients:
            ask(client)
        assert memory.used_bytes == ROOM_FOR * CONNECTION_BYTES
        waiting = threads.submit(SecureClient, broker.listeners["SECURE"], context)
        eventually(lambda: server_of(broker).handshakes._without_memory, PATIENCE_S)
        with RawClient(broker.listeners["PLAINTEXT"]) as plain:
            ask(plain)
        for client in clients:
            ask(client)
        assert (waiting.done(), memory.used_bytes) == (False, ROOM_FOR * CONNECTION_BYTES)
        clients.pop().close()
        clients.append(waiting.result(PATIENCE_S))
        for client in clients:
            ask(client)
            client.close()
        eventually(lambda: memory.used_bytes == 0, PATIENCE_S)


def test_one_that_finds_no_memory_is_closed_and_the_log_says_what_to_change(
    certificates: Certificates,
) -> None:
    stream = StringIO()
    logs.configure(json=True, stream=stream)
    try:
        with small(certificates, handshake_timeout="1s") as broker:
            context, address = trusting(certificates), broker.listeners["SECURE"]
            with contextlib.ExitStack() as opened:
                for _ in range(ROOM_FOR):
                    ask(opened.enter_context(SecureClient(address, context)))
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    SecureClient(address, context)
    finally:
        logging.getLogger().removeHandler(logs._forward)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    problems = [line["problem"] for line in lines if line["event"] == "a TLS handshake failed"]
    assert len(problems) == 1
    assert "performance.max_buffered_size" in problems[0]


def test_clients_that_send_nothing_take_no_memory(certificates: Certificates) -> None:
    with small(certificates) as broker:
        address, handshakes = broker.listeners["SECURE"], server_of(broker).handshakes
        silent = [socket.create_connection(address, PATIENCE_S) for _ in range(2 * ROOM_FOR)]
        eventually(lambda: len(handshakes) == len(silent), PATIENCE_S)
        with SecureClient(address, trusting(certificates)) as client:
            ask(client)
            assert server_of(broker).memory.used_bytes == CONNECTION_BYTES
        for each in silent:
            each.close()
        eventually(lambda: len(handshakes) == 0, PATIENCE_S)


def test_a_handshake_that_fails_gives_its_memory_back(certificates: Certificates) -> None:
    with small(certificates) as broker:
        memory, address = server_of(broker).memory, broker.listeners["SECURE"]
        for _ in range(2 * ROOM_FOR):
            with socket.create_connection(address, PATIENCE_S) as client:
                client.sendall(b"\x16\x03\x01\x00\x04\x01\x00\x00\x00")  # a ClientHello of 0 bytes
                with contextlib.suppress(ConnectionError):
                    while client.recv(1024):
                        pass
        eventually(lambda: memory.used_bytes == 0, PATIENCE_S)
        with SecureClient(address, trusting(certificates)) as client:
            ask(client)


def test_memory_is_released_once() -> None:
    memory = BufferedMemory()
    held = TlsMemory(memory)
    assert memory.used_bytes == CONNECTION_BYTES
    held.release()
    held.release()
    assert memory.used_bytes == 0


@pytest.mark.parametrize(
    ("limit", "used", "fits"), [(0, 1000, True), (9, 0, True), (10, 1, False), (11, 1, True)]
)
def test_room(limit: int, used: int, *, fits: bool) -> None:
    """Without a limit everything fits, and so does whatever comes first."""
    memory = BufferedMemory(limit)
    memory.use(used)
    assert memory.has_room(10) is fits
