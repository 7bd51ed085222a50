"""Tests clients that speak HTTP or TLS to a Kafka listener: the response and the log event."""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from functools import partial
from io import StringIO
from typing import Any

import pytest

from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.server.farewell import DISCARDED_BYTES_MAX
from barnabas.server.foreign import (
    HTTP_METHODS,
    HTTP_REQUEST,
    TLS_ALERT,
    TLS_BROKER_HELLO,
    TLS_CLIENT_HELLO,
)
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.log_streams import logged
from tests.support.talk.one_connection import OneConnection

PATIENCE_S = 30
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: broker\r\nAccept: */*\r\n\r\n"
CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64)


log = pytest.fixture(logged, scope="module")


@pytest.fixture(scope="module")
def broker(log: StringIO) -> Iterator[Broker]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    voters = {"cluster.voters": f"1@localhost:{port}"}
    with Broker(settings={"performance.request_stall_time": "1s", **voters}) as running:
        yield running


@pytest.fixture(params=["clients", "peers"])
def address(broker: Broker, request: pytest.FixtureRequest) -> tuple[str, int]:
    """Both listeners behave in the same way."""
    if request.param == "peers":
        assert broker.peer_address is not None
        return broker.peer_address
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


def lines(log: StringIO, event: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line for line in found if line["event"] == event]


def lines_from(log: StringIO, event: str, first: int) -> list[dict[str, Any]]:
    return lines(log, event)[first:]


def received(client: socket.socket) -> bytes:
    """Return all bytes up to the end of the connection."""
    content = bytearray()
    while part := client.recv(4096):
        content += part
    return bytes(content)


def ask(address: tuple[str, int], *parts: bytes) -> bytes:
    with socket.create_connection(address, PATIENCE_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            client.sendall(part)
        return received(client)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_http_client_reads_a_helpful_line(
    broker: Broker, address: tuple[str, int], method: str
) -> None:
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE_S)
    connection.request(method, "/topics", body=None if method == "GET" else b"{}" * 10_000)
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 400
    assert answer.headers.get_content_type() == "text/plain"
    assert answer.headers["Connection"] == "close"
    assert "This is a Kafka listener of Barnabas" in text
    assert f"barnabas topic list --bootstrap {broker.bootstrap}\n" in text
    assert text.count("\n") == 1
    connection.close()


def test_head_request_gets_no_body(address: tuple[str, int]) -> None:
    answer = ask(address, b"HEAD / HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("cut", range(1, 8))
def test_http_request_that_arrives_in_two_parts(address: tuple[str, int], cut: int) -> None:
    whole = ask(address, REQUEST)
    assert ask(address, REQUEST[:cut], REQUEST[cut:]) == whole


def test_http_request_that_arrives_byte_by_byte(address: tuple[str, int]) -> None:
    whole = ask(address, REQUEST)
    assert ask(address, *(bytes([byte]) for byte in REQUEST)) == whole


def test_log_names_the_protocol_and_the_client(
    address: tuple[str, int], log: StringIO, request: pytest.FixtureRequest
) -> None:
    hellos = (TLS_CLIENT_HELLO.format(protocol="PLAINTEXT"), TLS_BROKER_HELLO)
    hello = hellos[request.node.callspec.id == "peers"]
    before = {event: len(lines(log, event)) for event in (HTTP_REQUEST, hello)}
    ask(address, REQUEST)
    ask(address, CLIENT_HELLO)
    for event, count in before.items():
        found = eventually(partial(lines_from, log, event, count))
        assert [line["client"] for line in found] == ["127.0.0.1"]
    assert "frame length" not in log.getvalue()


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5, len(CLIENT_HELLO)])
def test_tls_handshake_is_refused_with_an_alert(address: tuple[str, int], cut: int) -> None:
    assert ask(address, CLIENT_HELLO[:cut], CLIENT_HELLO[cut:]) == TLS_ALERT


def test_tls_client_reports_the_alert(address: tuple[str, int]) -> None:
    context = ssl.create_default_context()
    with (
        socket.create_connection(address, PATIENCE_S) as client,
        pytest.raises(ssl.SSLError, match=r"(?i)alert handshake failure"),
    ):
        context.wrap_socket(client, server_hostname="localhost")


def test_connection_is_closed_and_forgotten(broker: Broker) -> None:
    host, _, port = broker.bootstrap.rpartition(":")
    assert broker._process is not None
    connections = broker._process.server.connections
    eventually(lambda: not connections)
    ask((host, int(port)), REQUEST)
    eventually(lambda: not connections)


def test_client_that_does_not_close_is_closed(broker: Broker) -> None:
    host, _, port = broker.bootstrap.rpartition(":")
    assert broker._process is not None
    connections = broker._process.server.connections
    with socket.create_connection((host, int(port)), PATIENCE_S) as client:
        client.sendall(REQUEST)
        received(client)
        eventually(lambda: not connections)


def test_only_the_first_bytes_of_a_connection_are_looked_at(broker: Broker, log: StringIO) -> None:
    host, _, port = broker.bootstrap.rpartition(":")
    before = len(lines(log, HTTP_REQUEST))
    with RawClient((host, int(port))) as client:
        assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
        client.send(REQUEST)
        assert client.was_closed()
    assert len(lines(log, HTTP_REQUEST)) == before


@pytest.mark.parametrize("method", HTTP_METHODS)
def test_every_method_is_recognised(method: bytes) -> None:
    one = OneConnection()
    one.arrive(method)
    assert one.problems == [HTTP_REQUEST]
    assert one.connection.closed


def upload_without_end(address: tuple[str, int]) -> None:
    with socket.create_connection(address, PATIENCE_S) as client:
        client.sendall(b"POST / HTTP/1.1\r\n\r\n")
        while True:
            client.sendall(bytes(DISCARDED_BYTES_MAX))


def test_a_large_upload_is_not_read_to_its_end(broker: Broker) -> None:
    host, _, port = broker.bootstrap.rpartition(":")
    with pytest.raises(ConnectionError):
        upload_without_end((host, int(port)))
