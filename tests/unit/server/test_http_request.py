"""Tests how heads of HTTP requests are read: what is not clearly right is refused."""

import pytest

from barnabas.server.http.http_request import HttpError, parse

GET = "GET /metrics HTTP/1.1\r\nHost: broker"


def status_of(head: str | bytes) -> int:
    with pytest.raises(HttpError) as caught:
        parse(head if isinstance(head, bytes) else head.encode())
    return caught.value.status


def test_a_request_of_prometheus() -> None:
    request = parse(
        b"GET /metrics?names=confluent&x= HTTP/1.1\r\nHost: broker:9644\r\n"
        b"Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10"
    )
    assert request.path == "/metrics"
    assert request.parameters == {"names": "confluent", "x": ""}
    assert request.accepts_gzip
    assert request.keeps_alive
    assert request.has_chunks
    assert not request.is_head


def test_an_old_client_gets_one_answer_without_chunks() -> None:
    request = parse(b"GET / HTTP/1.0")
    assert not request.keeps_alive
    assert not request.has_chunks
    assert parse(b"GET / HTTP/1.0\r\nConnection: Keep-Alive").keeps_alive


def test_a_client_may_close() -> None:
    assert not parse(f"{GET}\r\nConnection: close".encode()).keeps_alive


def test_a_proxy_names_the_whole_address() -> None:
    assert parse(b"HEAD http://broker:9644/health/live HTTP/1.1\r\nHost: b").path == "/health/live"


@pytest.mark.parametrize(
    ("value", "accepts"),
    [
        ("gzip", True),
        ("deflate, gzip;q=1.0, *;q=0.5", True),
        ("gzip;q=0", False),
        ("identity", False),
        ("br, gzipped", False),
        ("", False),
    ],
)
def test_compression_is_used_where_it_is_accepted(value: str, accepts: bool) -> None:
    assert parse(f"{GET}\r\nAccept-Encoding: {value}".encode()).accepts_gzip is accepts


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_not_served(method: str) -> None:
    assert status_of(f"{method} /metrics HTTP/1.1\r\nHost: b") == 405


@pytest.mark.parametrize(
    "head",
    [
        "",
        "GET",
        "GET /",
        "GET  / HTTP/1.1\r\nHost: b",
        "GET metrics HTTP/1.1\r\nHost: b",
        "GET /a b HTTP/1.1\r\nHost: b",
        "GET / HTTP/1.1",
        "GET / HTTP/1.1\r\nHost : b",
        "GET / HTTP/1.1\r\nHost: b\r\n folded: header",
        "GET / HTTP/1.1\r\nHost: b\r\nno colon",
        "GET / HTTP/1.1\r\nHost: b\nX: y",
        "GET / HTTP/1.1\r\nHost: b\r\nX: \x00",
        f"{GET}\r\nContent-Length: 5",
        f"{GET}\r\nContent-Length: 0\r\nContent-Length: 5",
        f"{GET}\r\nTransfer-Encoding: chunked",
        "GET /?" + "&".join(f"a{n}=1" for n in range(20)) + " HTTP/1.1\r\nHost: b",
        "\x16\x03\x01\x02\x00\x01",
    ],
)
def test_what_is_malformed_is_refused(head: str) -> None:
    assert status_of(head) == 400


def test_what_is_not_ascii_is_refused() -> None:
    assert status_of("GET /ü HTTP/1.1\r\nHost: b".encode()) == 400
    assert status_of(b"GET / HTTP/1.1\r\nHost: \xff") == 400


def test_too_many_fields_are_refused() -> None:
    assert status_of(GET + "".join(f"\r\nX-{n}: 1" for n in range(101))) == 431


def test_another_version_is_refused() -> None:
    assert status_of("GET / HTTP/2.0\r\nHost: b") == 505
