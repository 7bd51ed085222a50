"""Tests the exporter over HTTP: pages, health, what is refused, and clients that do not finish."""

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse

import pytest

from barnabas.exporter.exporter_http import CONNECTIONS_MAX, ExporterServer
from barnabas.exporter.exporter_page import ExporterPage
from barnabas.monitor.watcher import Watcher, WatchSettings

PATIENCE_S = 20.0


@contextmanager
def serving() -> Iterator[ExporterServer]:
    """Serve what a watcher knows that has never reached a broker."""
    settings = WatchSettings(properties={"bootstrap.servers": "127.0.0.1:1"}, interval_s=60)
    with Watcher(settings) as watcher:
        server = ExporterServer("127.0.0.1", 0, ExporterPage(watcher))
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


def test_clients_that_never_finish_do_not_shut_out_others_for_long() -> None:
    """They take all places; a place that one gives back serves the next client."""
    with serving() as server, ExitStack() as stack:
        host, port = server.server_address[:2]
        address = (str(host), int(port))
        idle = [
            stack.enter_context(socket.create_connection(address, PATIENCE_S))
            for _ in range(CONNECTIONS_MAX)
        ]
        late = stack.enter_context(socket.create_connection(address, PATIENCE_S))
        assert late.recv(1) == b"", "it is closed at once: no place is left"
        for each in idle:
            each.close()
        done = threading.Event()

        def answered() -> bool:
            try:
                return asked(address, "GET", "/metrics")[0].status == 200
            except OSError:
                return False

        while not answered():
            assert not done.wait(0.01)
