"""Tests the exporter over HTTP: pages, health, what is refused, and clients that do not finish."""

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse

import pytest

from barnabas.exporter import exporter_http
from barnabas.exporter.exporter_http import INDEX, ExporterServer
from barnabas.exporter.exporter_page import ExporterPage
from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing.waiting import eventually

PATIENCE_S = 20.0
IDLE = 200


class LargePage(ExporterPage):
    """A page that does not fit into the buffers of a connection."""

    def text(self) -> str:
        return "# large\n" * 1_000_000


@contextmanager
def serving(page: type[ExporterPage] = ExporterPage) -> Iterator[ExporterServer]:
    """Serve what a watcher knows that has never reached a broker."""
    settings = WatchSettings(properties={"bootstrap.servers": "127.0.0.1:1"}, interval_s=60)
    with Watcher(settings) as watcher:
        server = ExporterServer("127.0.0.1", 0, page(watcher))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, int]]:
    with serving() as server:
        host, port = server.server_address[:2]
        yield str(host), int(port)


def asked(
    served: tuple[str, int], method: str, path: str, **headers: str
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(*served, timeout=PATIENCE_S)
    try:
        connection.request(
            method, path, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_metrics_of_the_exporter_itself_are_there_without_brokers(
    served: tuple[str, int],
) -> None:
    answer, body = asked(served, "GET", "/metrics")
    assert answer.status == 200
    assert (answer.getheader("Content-Type") or "").startswith("text/plain; version=0.0.4")
    assert b"\nbarnabas_exporter_up 0\n" in body
    assert b"process_resident_memory_bytes " in body
    assert b"kafka_brokers" not in body


def test_gzip(served: tuple[str, int]) -> None:
    answer, body = asked(served, "GET", "/metrics", Accept_Encoding="gzip")
    assert answer.getheader("Content-Encoding") == "gzip"
    assert b"barnabas_exporter_up 0" in gzip.decompress(body)


def test_health_says_why_there_is_nothing(served: tuple[str, int]) -> None:
    answer, body = asked(served, "GET", "/health")
    assert answer.status == 503
    assert json.loads(body)["verdict"] == "starting"


def test_head_has_no_body(served: tuple[str, int]) -> None:
    answer, body = asked(served, "HEAD", "/metrics")
    assert (answer.status, body) == (200, b"")
    assert int(answer.getheader("Content-Length") or 0) > 100


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/nothing", 404),
        ("POST", "/metrics", 501),
        ("GET", "/metrics?name=x", 200),
        ("GET", "/" + "a" * 70_000, 414),
    ],
)
def test_other_requests(served: tuple[str, int], method: str, path: str, status: int) -> None:
    answer, _ = asked(served, method, path)
    assert answer.status == status


def connected(server: ExporterServer, buffer_bytes: int | None = None) -> socket.socket:
    host, port = server.server_address[:2]
    made = socket.socket()
    if buffer_bytes is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    made.settimeout(PATIENCE_S)
    made.connect((str(host), int(port)))
    return made


def is_ended(client: socket.socket) -> bool:
    """Read what is there; return whether the exporter ended the connection."""
    client.settimeout(0.01)
    try:
        while client.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def test_idle_clients_keep_no_scrape_out() -> None:
    """Many more than there are places; each newcomer takes the place of the oldest idle one."""
    with serving() as server, ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(connected(server))
        host, port = server.server_address[:2]
        for _ in range(3):
            assert asked((str(host), int(port)), "GET", "/metrics")[0].status == 200


@pytest.mark.parametrize("sent", [b"GET /metr", b"GET /metrics HTTP/1.1\r\nHost: x\r\n"], ids=repr)
def test_a_request_that_is_dripped_or_never_ends_is_given_up(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(exporter_http, "PATIENCE_S", 0.2)
    with serving() as server, connected(server) as silent, connected(server) as dripping:
        silent.sendall(sent)
        dripping.sendall(sent)

        def drips_in_vain() -> bool:
            try:
                dripping.sendall(b"a")
            except OSError:
                return True
            return is_ended(dripping)

        eventually(lambda: is_ended(silent), PATIENCE_S)
        eventually(drips_in_vain, PATIENCE_S)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"X: " + b"a" * 70_000 + b"\r\n", b"431"),
        (b"".join(b"X-%d: %s\r\n" % (n, b"a" * 1_000) for n in range(60)), b"431"),
        (b"X: a\r\n" * 200, b"431"),
        (b"X: " + b"a" * 10_000 + b"\r\n", b"200"),
    ],
    ids=["long line", "many bytes", "many lines", "large but allowed"],
)
def test_headers_are_bounded(headers: bytes, status: bytes) -> None:
    with serving() as server, connected(server) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n" + headers + b"\r\n")
        assert client.recv(100).split()[1] == status


def test_clients_that_do_not_read_give_their_places_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They have sent their requests, so they keep their places until their time is over."""
    monkeypatch.setattr(exporter_http, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(exporter_http._Handler, "timeout", 0.3)
    with serving(LargePage) as server, ExitStack() as stack:
        stuck = [stack.enter_context(connected(server, buffer_bytes=4_096)) for _ in range(3)]
        for each in stuck:
            each.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert each.recv(8) == b"HTTP/1.0"
        host, port = server.server_address[:2]

        def is_answered() -> bool:
            try:
                return asked((str(host), int(port)), "GET", "/")[0].status == 200
            except OSError:
                return False

        eventually(is_answered, PATIENCE_S)
        for each in stuck:
            assert len(each.makefile("rb").read()) < len("# large\n" * 1_000_000)


def test_half_closed_clients_get_their_answer() -> None:
    with serving() as server, connected(server) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        assert client.makefile("rb").read().endswith(INDEX)
