"""Tests clients that stand still: they are disconnected, and others are served meanwhile."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from barnabas.console.web import patient_http
from barnabas.testing.waiting import eventually
from tests.support.console.made_states import FakeWatcher, make_state
from tests.support.console.running_console import HOST, PATIENCE_S, RunningConsole

SHORT_S = 0.4
IDLE = 200
PIPELINED = 400
"""Answers of more bytes together than the buffers of two sockets take."""


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningConsole]:
    monkeypatch.setattr(patient_http, "LOOK_S", SHORT_S / 4)
    monkeypatch.setattr(patient_http, "REQUEST_PATIENCE_S", SHORT_S)
    monkeypatch.setattr(patient_http, "STALLED_S", SHORT_S)
    with RunningConsole(FakeWatcher(make_state(topics=["orders"]))) as running:
        yield running


def connected(console: RunningConsole) -> socket.socket:
    return socket.create_connection((HOST, console.port), PATIENCE_S)


def is_ended(client: socket.socket) -> bool:
    """Read what is there; return whether the console ended the connection."""
    client.settimeout(0.01)
    try:
        while client.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "GET /api/overview HTT",
        "GET /api/overview HTTP/1.1\r\nHost: localhost\r\n",
        "POST /api/topics HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
        "X-CSRF-Token: {token}\r\nContent-Length: 100\r\n\r\n{{",
    ],
)
def test_a_request_that_never_ends_is_given_up(console: RunningConsole, sent: str) -> None:
    token = console.headers()["X-CSRF-Token"]
    with connected(console) as client:
        client.sendall(sent.format(host=f"{HOST}:{console.port}", token=token).encode())
        eventually(lambda: is_ended(client), PATIENCE_S)


def test_a_byte_now_and_then_does_not_prolong_a_request(console: RunningConsole) -> None:
    with connected(console) as client:
        client.sendall(b"GET /api/overview HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")

        def drips_in_vain() -> bool:
            try:
                client.sendall(b"a")
            except OSError:
                return True
            return is_ended(client)

        eventually(drips_in_vain, PATIENCE_S)


def test_many_idle_connections_shut_nobody_out_and_end(console: RunningConsole) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(console)) for _ in range(IDLE)]
        assert console.get("/api/topics")["total"] == 1
        eventually(lambda: all(is_ended(each) for each in idle), PATIENCE_S)
    assert console.get("/api/topics")["total"] == 1


def test_huge_headers_are_refused(console: RunningConsole) -> None:
    with connected(console) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: " + b"a" * (64 << 10))
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def test_a_client_that_does_not_read_its_answers_is_disconnected(console: RunningConsole) -> None:
    script = re.search(r'src="\./(assets/[^"]+)"', httpx.get(console.base).text)
    assert script is not None
    request = f"GET /{script[1]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with connected(console) as client:
        client.sendall(request * PIPELINED)
        eventually(lambda: _is_reset(client), PATIENCE_S)


def _is_reset(client: socket.socket) -> bool:
    """Return whether the other end is gone, without reading what it has sent."""
    return bool(client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))


def test_a_page_that_waits_for_events_stays_connected(console: RunningConsole) -> None:
    """Its request is whole and it reads what comes, so it may be silent as long as it wants."""
    with connected(console) as page, connected(console) as idle:
        page.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        eventually(lambda: is_ended(idle), PATIENCE_S)
        assert not is_ended(page)
