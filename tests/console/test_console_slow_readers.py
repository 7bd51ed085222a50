"""Tests pages that read a live tail slowly or not at all: memory stays, others are served."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from confluent_kafka import Producer

from barnabas.console.records.message_routes import STREAMS_A_SESSION_MAX
from barnabas.console.web import patient_http
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.console.running_console import RunningConsole

PATIENCE_S = 60.0
RECORD_BYTES = 900_000
RECORDS = 250
STUCK = 8
GROWTH_MAX = 220 << 20
"""Eight tails of at most 4 MiB each, what is in work, and what Python does not give back; the
records are 225 MB, and each tail would hold twice as much of them."""

NewTopicOf = Callable[..., str]


def stuck_reader(host: str, port: int, path: str) -> socket.socket:
    """Open a stream of events, and read nothing of it."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.settimeout(PATIENCE_S)
    made.connect((host, port))
    made.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert made.recv(12) == b"HTTP/1.1 200"
    return made


def send(producer: Producer, topic: str, count: int) -> None:
    for number in range(count):
        producer.produce(topic, str(number).encode().ljust(RECORD_BYTES, b"."))
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def test_tails_that_are_not_read_give_their_places_back(
    console: RunningConsole,
    new_topic: NewTopicOf,
    producer: Producer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patient_http, "LOOK_S", 0.1)
    monkeypatch.setattr(patient_http, "STALLED_S", 0.5)
    topic = new_topic()
    path = f"/api/messages/tail?topic={topic}&full=1"
    with ExitStack() as stack:
        for _ in range(STREAMS_A_SESSION_MAX):
            stack.enter_context(stuck_reader("127.0.0.1", console.port, path))
        refused = httpx.get(f"{console.base}/api/messages/tail", params={"topic": topic})
        assert refused.status_code == 429, "all places are taken"
        send(producer, topic, 8)

        def is_served() -> bool:
            with httpx.stream(
                "GET", f"{console.base}/api/messages/tail", params={"topic": topic}
            ) as answer:
                return answer.status_code == 200

        eventually(is_served, PATIENCE_S)


@pytest.fixture
def process(broker: Broker) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A console of its own process, whose memory can be told from that of the broker."""
    words = ("console", "--bootstrap", broker.bootstrap, "--listen", "127.0.0.1:0", "--json")
    with subprocess.Popen(
        [sys.executable, "-m", "barnabas.cli", *words], stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            yield running, json.loads(running.stdout.readline())["url"]
        finally:
            running.send_signal(signal.SIGTERM)


def resident_bytes(pid: int) -> int:
    (line,) = (
        each
        for each in Path(f"/proc/{pid}/status").read_text().splitlines()
        if each.startswith("VmRSS:")
    )
    return int(line.split()[1]) << 10


@pytest.mark.slow
def test_memory_does_not_grow_with_what_pages_do_not_read(
    process: tuple[subprocess.Popen[str], str], new_topic: NewTopicOf, producer: Producer
) -> None:
    running, url = process
    place = urlsplit(url)
    topic = new_topic()
    path = f"/api/messages/tail?topic={topic}&full=1"
    before = resident_bytes(running.pid)
    with ExitStack() as stack:
        for _ in range(STUCK):
            stack.enter_context(stuck_reader(place.hostname or "", place.port or 0, path))
        reader = httpx.stream("GET", f"{url}api/messages/tail", params={"topic": topic})
        lines = stack.enter_context(reader).iter_lines()
        send(producer, topic, RECORDS)
        last = f'"offset":{RECORDS - 1},'
        assert any(last in line or '"skipped"' in line for line in lines), "a page that reads"
        assert httpx.get(f"{url}api/session").status_code == 200
        grown = resident_bytes(running.pid) - before
    assert grown < GROWTH_MAX, f"{grown >> 20} MiB more"
