"""TLS on a broker's listeners, through real sockets: handshakes, names and wrong clients."""

import contextlib
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from barnabas.handlers import registry
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient, frame_of, framed, pipelined
from barnabas.testing.waiting import eventually
from tests.support.log_streams import logged
from tests.support.security.certificates import Certificates, secure
from tests.support.security.tls_clients import (
    ManualClient,
    SecureClient,
    carry,
    shake_hands,
    trusting,
)
from tests.support.talk.rows import handler_of, with_handler

PATIENCE_S = 30
FAILED = "a TLS handshake failed"


log = pytest.fixture(logged, scope="module")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(log: StringIO, certificates: Certificates) -> Iterator[Broker]:
    files = certificates.broker()
    settings = {
        "listeners.PLAINTEXT.listen": "127.0.0.1:0",
        **secure(certificates, files),
        **secure(certificates, files, name="REQUESTED", clients="requested"),
        **secure(certificates, files, name="REQUIRED", clients="required"),
        "listeners.REQUIRED.principal_mapping_rules": ["RULE:^CN=(.*?),.*$/$1/U"],
        "security.handshake_timeout": "300ms",
    }
    with Broker(settings=settings) as running:
        yield running


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The callers of DescribeCluster requests, as handlers see them."""
    seen: list[Any] = []
    row = registry.SERVED[ApiKey.DESCRIBE_CLUSTER]
    handle = handler_of(row)

    def note(node: Any, request: Any, context: Any) -> Any:
        seen.append(context.caller)
        return handle(node, request, context)

    monkeypatch.setitem(registry.SERVED, ApiKey.DESCRIBE_CLUSTER, with_handler(row, note))
    return seen


def problems(log: StringIO, event: str = FAILED) -> list[str]:
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line.get("problem", line["event"]) for line in lines if line["event"] == event]


def describe(client: RawClient) -> DescribeClusterResponse:
    return client.ask(DescribeClusterRequest(), 1, DescribeClusterResponse)


def connected(broker: Broker, listener: str) -> socket.socket:
    return socket.create_connection(broker.listeners[listener], PATIENCE_S)


def test_each_listener_answers_with_its_own_address(
    broker: Broker, certificates: Certificates
) -> None:
    context = trusting(certificates)
    with SecureClient(broker.listeners["SECURE"], context) as client:
        (over_tls,) = describe(client).brokers
    with RawClient(broker.listeners["PLAINTEXT"]) as client:
        (plain,) = describe(client).brokers
    assert (over_tls.host, over_tls.port) == broker.listeners["SECURE"]
    assert (plain.host, plain.port) == broker.listeners["PLAINTEXT"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("piece_bytes", [1, 100])
def test_a_handshake_cut_anywhere_completes(
    broker: Broker, certificates: Certificates, version: ssl.TLSVersion, piece_bytes: int
) -> None:
    context = trusting(certificates)
    context.minimum_version = context.maximum_version = version
    client = ManualClient(context)
    with connected(broker, "SECURE") as connection:
        shake_hands(client, connection, piece_bytes)
        client.tls.write(framed(frame_of(ApiVersionsRequest(), 0)))
        carry(client, connection)  # the end of the handshake and a request, together
        while not (answer := client.read()):
            client.incoming.write(connection.recv(65536))
    assert len(answer) > 4


def test_requests_of_one_record_are_all_answered(
    broker: Broker, certificates: Certificates
) -> None:
    count = 1000  # more than a connection handles in one event
    requests = [(ApiVersionsRequest(), 0)] * count
    with SecureClient(broker.listeners["SECURE"], trusting(certificates)) as client:
        client.send(pipelined(requests))
        answers = [client.receive(ApiVersionsResponse, 0).error_code for _ in range(count)]
    assert answers == [0] * count


def test_a_client_that_does_not_complete_the_handshake_is_closed(
    broker: Broker, log: StringIO
) -> None:
    with connected(broker, "SECURE") as silent:
        assert silent.recv(1) == b""
    with connected(broker, "SECURE") as slow:
        slow.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert slow.recv(1) == b""
    assert any("did not complete it in time" in each for each in problems(log))


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (framed(frame_of(ApiVersionsRequest(), 0)), "a client without TLS connected"),
        (b"GET / HTTP/1.1\r\n\r\n", "it sent an HTTP request"),
    ],
)
def test_a_client_without_tls_is_closed_and_the_log_says_what_to_change(
    broker: Broker, log: StringIO, first: bytes, said: str
) -> None:
    with connected(broker, "REQUESTED") as plain:
        plain.sendall(first)
        with contextlib.suppress(ConnectionResetError):
            assert plain.recv(1) == b""
    found = eventually(lambda: [each for each in problems(log) if said in each], PATIENCE_S)
    assert "security.protocol" in found[0]


def test_https_is_told_that_this_is_kafka(broker: Broker, certificates: Certificates) -> None:
    _, port = broker.listeners["SECURE"]
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"https://localhost:{port}/", context=trusting(certificates))
    with caught.value as answer:
        assert answer.code == http.client.BAD_REQUEST
        assert f"--bootstrap 127.0.0.1:{port}" in answer.read().decode()


def test_an_expired_certificate_of_the_broker_is_logged(
    certificates: Certificates, log: StringIO
) -> None:
    """A running broker keeps a certificate that expires: clients refuse it."""
    files = certificates.broker("brief")
    settings = secure(certificates, files) | {"security.certificate_check_interval": "50ms"}
    with Broker(settings=settings) as brief:
        certificates.broker("brief", valid_s=2.0)

        def is_expired() -> bool:
            try:
                SecureClient(brief.listeners["SECURE"], trusting(certificates)).close()
            except ssl.SSLCertVerificationError as error:
                return "expired" in error.verify_message
            return False

        eventually(is_expired, PATIENCE_S)
        said = "the certificate of this broker has expired, the client says; replace it"
        assert eventually(lambda: any(said in each for each in problems(log)), PATIENCE_S)


def test_a_client_that_does_not_trust_the_broker_is_logged(broker: Broker, log: StringIO) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        SecureClient(broker.listeners["SECURE"], ssl.create_default_context())
    assert eventually(
        lambda: any("does not trust the certificate" in each for each in problems(log)), PATIENCE_S
    )


def test_a_certificate_becomes_a_principal(
    broker: Broker, certificates: Certificates, callers: list[Any]
) -> None:
    context = trusting(certificates, certificates.client("alice"))
    for listener in ("REQUIRED", "REQUESTED"):
        with SecureClient(broker.listeners[listener], context) as client:
            describe(client)
    by_rule, by_default = (str(each.principal) for each in callers)
    assert by_rule == "User:ALICE"
    assert by_default.startswith("User:CN=alice,OU=")  # trustme writes more behind it
    assert callers[0].listener.protocol == "SSL"


def test_no_certificate_is_anonymous_where_it_is_not_required(
    broker: Broker, certificates: Certificates, callers: list[Any]
) -> None:
    with SecureClient(broker.listeners["REQUESTED"], trusting(certificates)) as client:
        describe(client)
    assert str(callers[0].principal) == "User:ANONYMOUS"


def test_a_client_without_the_required_certificate_is_refused(
    broker: Broker, certificates: Certificates, log: StringIO
) -> None:
    # In TLS 1.3 the client believes that the handshake is complete, and learns it when it reads.
    with (
        pytest.raises((ssl.SSLError, ConnectionError, EOFError)),
        SecureClient(broker.listeners["REQUIRED"], trusting(certificates)) as client,
    ):
        describe(client)
    assert eventually(
        lambda: any("requires a certificate of the client" in each for each in problems(log)),
        PATIENCE_S,
    )


def test_a_certificate_that_has_expired_is_refused(
    broker: Broker, certificates: Certificates, log: StringIO
) -> None:
    expired = certificates.client("expired", valid_s=-1)
    with (
        pytest.raises((ssl.SSLError, ConnectionError, EOFError)),
        SecureClient(broker.listeners["REQUIRED"], trusting(certificates, expired)) as client,
    ):
        describe(client)
    assert eventually(
        lambda: any("certificate has expired" in each for each in problems(log)), PATIENCE_S
    )


def test_a_certificate_of_another_authority_is_refused(
    broker: Broker, certificates: Certificates, tmp_path: Path, log: StringIO
) -> None:
    stranger = Certificates(tmp_path / "other").client("stranger")
    with (
        pytest.raises((ssl.SSLError, ConnectionError, EOFError)),
        SecureClient(broker.listeners["REQUIRED"], trusting(certificates, stranger)) as client,
    ):
        describe(client)
    assert eventually(
        lambda: any("not from the listener's authorities" in each for each in problems(log)),
        PATIENCE_S,
    )


def test_a_name_that_no_rule_matches_is_refused(
    broker: Broker, certificates: Certificates, log: StringIO
) -> None:
    # The rule wants a comma behind the name; a broker's certificate has no common name.
    context = trusting(certificates, certificates.broker("nameless"))
    with (
        pytest.raises((ssl.SSLError, ConnectionError, EOFError)),
        SecureClient(broker.listeners["REQUIRED"], context) as client,
    ):
        describe(client)
    assert eventually(
        lambda: any("no principal_mapping_rule matches" in each for each in problems(log)),
        PATIENCE_S,
    )


def test_a_session_ends_when_the_clients_certificate_expires(
    broker: Broker, certificates: Certificates
) -> None:
    context = trusting(certificates, certificates.client("short-lived", valid_s=3))
    with SecureClient(broker.listeners["REQUIRED"], context) as client:
        describe(client)
        assert client.was_closed()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_renegotiation_does_not_happen(broker: Broker, certificates: Certificates) -> None:
    host, port = broker.listeners["SECURE"]
    command = ["openssl", "s_client", "-connect", f"{host}:{port}", "-tls1_2"]
    ended = subprocess.run(
        [*command, "-CAfile", certificates.authority],
        input=b"R\n",
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert b"RENEGOTIATING" in ended.stdout + ended.stderr
    assert b"no renegotiation" in ended.stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_client_may_change_its_keys(broker: Broker, certificates: Certificates) -> None:
    """TLS 1.3 lets a client change its keys, and ask for other ones of the broker (RFC 8446)."""
    host, port = broker.listeners["SECURE"]
    command = ["openssl", "s_client", "-connect", f"{host}:{port}", "-tls1_3", "-quiet"]
    request = framed(frame_of(ApiVersionsRequest(), 0))
    with subprocess.Popen(
        [*command, "-no_ign_eof", "-CAfile", certificates.authority],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stderr is not None
        for change in (b"", b"K\n", b"k\n"):
            client.stdin.write(change)
            while change and client.stderr.readline() != b"KEYUPDATE\n":
                assert client.poll() is None
            client.stdin.write(request)
            answer = client.stdout.read(8)
            assert answer is not None
            size, number = int.from_bytes(answer[:4]), int.from_bytes(answer[4:])
            assert (size > 100, number) == (True, 1)
            rest = size - 4
            while rest:
                rest -= len(client.stdout.read(rest) or b"")
        client.stdin.close()


def test_many_clients_connect_at_once(certificates: Certificates) -> None:
    # A broker of its own: the other one gives a handshake less time than a busy machine needs.
    with Broker(settings=secure(certificates, certificates.broker())) as patient:
        context = trusting(certificates)
        clients = [ManualClient(context) for _ in range(100)]
        sockets = [connected(patient, "SECURE") for _ in clients]
        for client, connection in zip(clients, sockets, strict=True):
            client.shake_hands()
            carry(client, connection)
        for client, connection in zip(clients, sockets, strict=True):
            shake_hands(client, connection)
            client.tls.write(framed(frame_of(ApiVersionsRequest(), 0)))
            carry(client, connection)
        for client, connection in zip(clients, sockets, strict=True):
            while not client.read():
                client.incoming.write(connection.recv(65536))
            connection.close()


def test_handshakes_in_progress_count_as_connections(certificates: Certificates) -> None:
    settings = {**secure(certificates, certificates.broker()), "performance.max_connections": 2}
    with Broker(settings=settings) as broker:
        silent = [connected(broker, "SECURE") for _ in range(2)]
        assert broker._process is not None
        handshakes = broker._process.server.handshakes
        eventually(lambda: len(handshakes) == 2, PATIENCE_S)
        with connected(broker, "SECURE") as refused:
            assert refused.recv(1) == b""
        for each in silent:
            each.close()
        eventually(lambda: len(handshakes) == 0, PATIENCE_S)
        with SecureClient(broker.listeners["SECURE"], trusting(certificates)) as client:
            describe(client)
