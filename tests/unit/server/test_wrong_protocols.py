"""Clients that speak the wrong protocol, or stall, on each kind of listener."""

import json
import socket
import ssl
from collections.abc import Iterator
from io import StringIO

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import encoder
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.server.foreign import TLS_ALERT
from barnabas.testing.broker import Broker
from barnabas.testing.free_ports import free_port
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.log_streams import logged
from tests.support.security.certificates import Certificates, secure

PATIENCE_S = 30
LIMIT_S = 1


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    end = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    return outgoing.read()


def metadata_request() -> bytes:
    """Return the first request of a client that does not know of SASL."""
    header = RequestHeader(request_api_key=ApiKey.METADATA, request_api_version=1, client_id="test")
    body = encoder(RequestHeader, 1)(header)
    body += encoder(MetadataRequest, 1)(MetadataRequest(topics=None))
    return len(body).to_bytes(4, "big") + body


log = pytest.fixture(logged, scope="module")


@pytest.fixture(scope="module")
def broker(log: StringIO, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with a listener of each kind."""
    del log
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    files = certificates.broker()
    settings = {
        "listeners.PLAINTEXT.listen": "127.0.0.1:0",
        **secure(certificates, files, name="SSL"),
        "listeners.SASL.listen": "127.0.0.1:0",
        "listeners.SASL.protocol": "SASL_PLAINTEXT",
        **secure(certificates, files, name="BOTH"),
        "listeners.BOTH.protocol": "SASL_SSL",
        "security.handshake_timeout": f"{LIMIT_S}s",
        "cluster.voters": f"1@127.0.0.1:{free_port()}",
    }
    with Broker(settings=settings) as started:
        yield started


def address(broker: Broker, listener: str) -> tuple[str, int]:
    if listener == "PEER":
        assert broker.peer_address is not None
        return broker.peer_address
    return broker.listeners[listener]


def answer(broker: Broker, listener: str, sent: bytes) -> bytes:
    """Return all that a client gets until the broker closes the connection."""
    with socket.create_connection(address(broker, listener), PATIENCE_S) as client:
        client.sendall(sent)
        parts = []
        try:
            while part := client.recv(65536):
                parts.append(part)
        except ConnectionResetError:
            pass
        return b"".join(parts)


def said(log: StringIO, *words: str) -> list[str]:
    """Return the lines that contain all words."""
    found = [json.loads(line) for line in log.getvalue().splitlines()]
    lines = [f"{each['event']} {each.get('problem', '')}" for each in found]
    return [line for line in lines if all(word in line for word in words)]


@pytest.mark.parametrize(
    ("listener", "words"),
    [
        ("PLAINTEXT", ("TLS handshake", "security.protocol to PLAINTEXT in")),
        ("SASL", ("TLS handshake", "security.protocol to SASL_PLAINTEXT in")),
        ("PEER", ("TLS handshake", "cluster.tls_certificate")),
    ],
)
def test_tls_on_a_listener_without_tls(
    broker: Broker, log: StringIO, listener: str, words: tuple[str, ...]
) -> None:
    assert answer(broker, listener, client_hello()) == TLS_ALERT
    assert eventually(lambda: said(log, *words))


@pytest.mark.parametrize("listener", ["SSL", "BOTH"])
def test_a_request_on_a_listener_with_tls(broker: Broker, log: StringIO, listener: str) -> None:
    assert answer(broker, listener, metadata_request()) == b""
    assert eventually(lambda: said(log, "without TLS connected to a TLS listener"))


def test_a_client_that_does_not_know_of_sasl(broker: Broker, log: StringIO) -> None:
    assert answer(broker, "SASL", metadata_request()) == b""
    assert eventually(lambda: said(log, "Metadata before the client has authenticated"))


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL"])
def test_http_is_told_the_address_of_the_listener(broker: Broker, listener: str) -> None:
    host, port = broker.listeners[listener]
    assert f"--bootstrap {host}:{port}\n".encode() in answer(
        broker, listener, b"GET / HTTP/1.1\r\n\r\n"
    )


@pytest.mark.parametrize("listener", ["SSL", "BOTH", "SASL"])
@pytest.mark.parametrize("is_silent", [True, False])
def test_a_client_that_stalls_is_closed_and_holds_up_no_other(
    broker: Broker, listener: str, is_silent: bool
) -> None:
    """The limit is for the whole handshake: bytes that arrive now and then do not extend it."""
    content = metadata_request() if listener == "SASL" else client_hello()
    with socket.create_connection(address(broker, listener), PATIENCE_S) as client:
        client.settimeout(LIMIT_S / 5)
        closed, sent = False, 0
        while not closed:
            try:
                if not is_silent and sent < len(content) - 1:
                    client.sendall(content[sent : sent + 1])
                    sent += 1
                closed = client.recv(1) == b""
            except TimeoutError:
                with RawClient(broker.listeners["PLAINTEXT"]) as other:
                    assert other.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
            except ConnectionError:
                closed = True
            assert sent < 100, "each byte extends the limit"
