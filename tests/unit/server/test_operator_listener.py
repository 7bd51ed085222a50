"""Tests the HTTP listener over real sockets, with good clients and with hostile ones."""

import gzip
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.app import CannotStartError
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.server.http import http_connection, operator_listener
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.http_client import (
    PATIENCE_S,
    ask,
    connected,
    receive_until_closed,
    scrape,
)

LIVE = b"GET /health/live HTTP/1.1\r\nHost: broker\r\n\r\n"
METRICS = b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(settings={"observability.http_listen": "127.0.0.1:0"}) as running:
        yield running


def test_without_the_setting_there_is_no_listener_and_nothing_is_counted() -> None:
    with Broker() as broker:
        assert broker.http_address is None
        assert broker._process is not None
        assert broker._process.node.traffic is None
        assert type(broker._process.server).__name__ == "Server"


def test_the_first_page_lists_the_others(broker: Broker) -> None:
    page = ask(broker.http_address, "/")
    assert page.status == 200
    for path in ("/metrics", "/health/ready", "/debug/slow"):
        assert path in page.text
        assert ask(broker.http_address, path).status == 200


def test_a_broker_that_serves_is_live_and_ready(broker: Broker) -> None:
    for path, word in (("/health/live", "live"), ("/health/ready", "ready")):
        page = ask(broker.http_address, path)
        assert (page.status, page.json) == (200, {"verdict": word, "reasons": []})
        assert page.fields["content-type"] == "application/json; charset=utf-8"


def test_a_broker_alone_may_not_be_restarted_without_harm(broker: Broker) -> None:
    page = ask(broker.http_address, "/health/restart-safe")
    assert page.status == 503
    assert page.json["verdict"] == "unsafe"
    assert "the only voter" in page.json["reasons"][-1]


def test_the_cluster_is_healthy(broker: Broker) -> None:
    for path in ("/health/cluster", "/health/cluster?strict"):
        page = ask(broker.http_address, path)
        assert (page.status, page.json["verdict"]) == (200, "healthy")


def test_a_head_has_no_body(broker: Broker) -> None:
    for path in ("/", "/metrics", "/health/live", "/nowhere"):
        page = ask(broker.http_address, path, "HEAD")
        assert page.content == b""
        assert page.status == (404 if path == "/nowhere" else 200)


def test_metrics_are_compressed_where_the_client_wants_that(broker: Broker) -> None:
    page = ask(broker.http_address, "/metrics", Accept_Encoding="gzip")
    assert page.fields["content-encoding"] == "gzip"
    plain = ask(broker.http_address, "/metrics")
    assert "content-encoding" not in plain.fields
    assert len(page.content) < len(plain.content) / 3
    assert b"# TYPE barnabas_build_info gauge" in gzip.decompress(page.content)


def test_unknown_pages_and_names(broker: Broker) -> None:
    assert ask(broker.http_address, "/favicon.ico").status == 404
    assert ask(broker.http_address, "/metrics/").status == 404
    assert ask(broker.http_address, "/metrics?names=mine").status == 400


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT"])
def test_a_wrong_method_is_refused_with_those_that_are_right(broker: Broker, method: str) -> None:
    page = ask(broker.http_address, "/metrics", method)
    assert (page.status, page.fields["allow"]) == (405, "GET, HEAD")


def test_many_requests_on_one_connection(broker: Broker) -> None:
    with connected(broker.http_address) as client:
        for _ in range(3):
            client.sendall(LIVE)
            assert b'"live"' in client.recv(65536)


def test_pipelined_requests_are_answered_in_order(broker: Broker) -> None:
    last = b"GET /nowhere HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n"
    with connected(broker.http_address) as client:
        client.sendall(LIVE * 20 + METRICS + last)
        received = receive_until_closed(client)
    assert received.count(b'"live"') == 20
    assert received.index(b"barnabas_build_info") > received.rindex(b'"live"')
    assert received.rstrip().endswith(b"/ lists all pages")


def test_a_request_that_arrives_byte_by_byte(broker: Broker) -> None:
    with connected(broker.http_address) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for position in range(len(LIVE)):
            client.sendall(LIVE[position : position + 1])
        assert b'"live"' in client.recv(65536)


def test_an_old_client_gets_an_answer_that_ends_with_the_connection(broker: Broker) -> None:
    with connected(broker.http_address) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        received = receive_until_closed(client)
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body.startswith(b"# HELP")
    assert body.endswith(b"\n")
    assert b"barnabas_build_info{" in body


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /" + b"a" * 20_000, b"431"),
        (b"GET / HTTP/1.1\r\nHost: b\r\nX: " + b"y" * 9_000 + b"\r\n\r\n", b"431"),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 100000\r\n\r\n" + b"x" * 30_000, b"405"),
        (b"GET / HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
    ],
)
def test_bad_input_is_refused_and_the_connection_closed(
    broker: Broker, sent: bytes, status: bytes
) -> None:
    with connected(broker.http_address) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert receive_until_closed(client).startswith(b"HTTP/1.1 " + status)


def test_a_client_that_never_sends_a_head_is_dropped(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "HEAD_MS_MAX", 50)
    with connected(broker.http_address) as silent, connected(broker.http_address) as slow:
        slow.sendall(LIVE[:10])
        assert receive_until_closed(silent) == b""
        assert receive_until_closed(slow) == b""


def test_a_slow_reader_is_dropped_and_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "STALL_MS_MAX", 300)
    settings: dict[str, object] = {
        "observability.http_listen": "127.0.0.1:0",
        "broker.default_partitions": 300,
        "performance.socket_send_buffer": "4KB",
    }
    with Broker(settings=settings) as broker, connected(broker.http_address, 4096) as slow:
        host, _, port = broker.bootstrap.rpartition(":")
        with RawClient((host, int(port))) as client:
            topics = [MetadataRequestTopic(name="wide")]
            client.ask(MetadataRequest(topics=topics), 12, MetadataResponse)
        slow.sendall(METRICS)
        found = scrape(broker.http_address)
        assert found.value("kafka_server_replicamanager_partitioncount") == 300
        assert broker._process is not None
        server = broker._process.server
        eventually(lambda: server._operators == 0, PATIENCE_S)
        received = receive_until_closed(slow)
        assert received.startswith(b"HTTP/1.1 200")
        assert b"\r\n0\r\n\r\n" not in received, "the answer is cut off"


def test_connections_are_limited(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_listener, "CONNECTIONS_MAX", 3)
    with Broker(settings={"observability.http_listen": "127.0.0.1:0"}) as limited:
        opened = [socket.create_connection(limited.http_address or ("", 0)) for _ in range(3)]
        try:
            for each in opened:
                each.sendall(LIVE)
                assert b'"live"' in each.recv(65536)
            with connected(limited.http_address) as refused:
                assert receive_until_closed(refused) == b""
        finally:
            for each in opened:
                each.close()


def test_operators_get_in_where_clients_do_not() -> None:
    settings: dict[str, object] = {
        "observability.http_listen": "127.0.0.1:0",
        "performance.max_connections": 1,
    }
    with Broker(settings=settings) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        with connected((host, int(port))), connected((host, int(port))) as refused:
            assert receive_until_closed(refused) == b""
            found = scrape(broker.http_address)
            assert found.value("barnabas_connections_limit") == 1
            refusals = found.value("barnabas_connections_refused_total", reason="max_connections")
            assert refusals == 1


def test_a_page_that_fails_says_so(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ValueError("no such luck")

    monkeypatch.setattr("barnabas.server.http.operator_pages.readiness", broken)
    assert ask(broker.http_address, "/health/ready").status == 500
    assert ask(broker.http_address, "/health/live").status == 200


def test_an_answer_that_fails_in_the_middle_is_cut_off(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> object:
        raise ValueError("no such luck")

    monkeypatch.setattr("barnabas.server.metrics.broker_metrics.process_facts", broken)
    with connected(broker.http_address) as client:
        client.sendall(METRICS)
        received = receive_until_closed(client)
    assert received.startswith(b"HTTP/1.1 200")
    assert not received.endswith(b"0\r\n\r\n")


def test_a_port_that_is_in_use_stops_the_start(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings = {"observability.http_listen": f"127.0.0.1:{taken.getsockname()[1]}"}
        with pytest.raises(CannotStartError, match=r"for HTTP.*choose another address with --http"):
            Broker(tmp_path, settings=settings).start()
    with Broker(tmp_path, settings={"observability.http_listen": "127.0.0.1:0"}) as broker:
        assert ask(broker.http_address, "/health/live").status == 200
