"""Tests that connections take turns on the event loop, and that few responses are queued."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from struct import Struct
from typing import Any

import pytest

from barnabas.handlers import registry
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import encoder
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.server.server import Server
from barnabas.sim.edge import Limits, SimServer
from barnabas.sim.frames import frame_of
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from tests.support.talk.one_connection import Asked, OneConnection
from tests.support.talk.requests import fetch_request
from tests.support.talk.rows import handler_of, with_handler

PATIENCE_S = 30
_LENGTH = Struct(">i")

HELLO = Asked(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
LIST = Asked(MetadataRequest(topics=[MetadataRequestTopic(name="idle")]), 9)
WAIT = Asked(fetch_request("idle", max_wait_ms=700, min_bytes=1), 11)


def stream(*asked: Asked) -> bytes:
    return b"".join(each.frame(number) for number, each in enumerate(asked))


# --- one connection, driven by a test ---


def test_so_many_requests_are_handled_in_one_event() -> None:
    one = OneConnection(Limits(frames_per_event=3))
    one.arrive(stream(*[HELLO] * 10))
    answered = [len(one.answers)]
    for _ in range(3):
        one.turn()
        answered.append(len(one.answers))
    assert answered == [3, 6, 9, 10]


def test_no_request_is_begun_once_an_event_has_taken_long(monkeypatch: pytest.MonkeyPatch) -> None:
    one = OneConnection()
    took_ms = iter([0, 0, 1, 1, 1])
    monkeypatch.setattr(
        SimServer, "monotonic_ms", lambda server: server.node.timers.now_ms + next(took_ms, 0)
    )
    one.arrive(stream(*[HELLO] * 5))
    assert len(one.answers) == 3
    one.turn()
    assert len(one.answers) == 4


def test_nothing_is_read_before_what_was_set_aside_is_handled() -> None:
    one = OneConnection(Limits(frames_per_event=1))
    one.arrive(stream(*[HELLO] * 3))
    one.arrive(HELLO.frame(3))
    assert one.unread_bytes == len(HELLO.frame(3))
    one.finish(4)
    assert one.unread_bytes == 0
    assert len(one.answers) == 4


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The Metadata requests that were handled."""
    found: list[object] = []
    row = registry.SERVED[ApiKey.METADATA]

    def handle(node: Any, request: Any, context: Any) -> Any:
        found.append(request)
        return handler_of(row)(node, request, context)

    monkeypatch.setitem(registry.SERVED, ApiKey.METADATA, with_handler(row, handle))
    return found


def test_answers_behind_a_pending_one_count_in_bytes(listed: list[object]) -> None:
    one = OneConnection(Limits(queued_bytes=1_000))
    one.edge.create("idle")
    one.arrive(LIST.frame(0))
    size = len(one.answers[0])
    listed.clear()
    one.arrive(stream(WAIT, *[LIST] * 100))
    assert (len(listed) - 1) * size <= 1_000, "the last one is the one that was too many"
    one.pass_time(700)
    one.finish(102)
    assert len(listed) == 100
    assert len(one.answers) == 102


def test_a_connection_that_waits_behind_a_pending_answer_continues_after_it(
    listed: list[object],
) -> None:
    """Received and sent bytes are counted separately: neither counter may grow forever."""
    one = OneConnection(Limits(queued_bytes=300))
    one.edge.create("idle")
    for _ in range(3):
        one.arrive(stream(WAIT, *[LIST] * 10))
        one.pass_time(700)
        one.finish(11)
        assert len(one.answers) == 11
        one.answers.clear()


# --- several connections, on real sockets ---


class Crowd:
    """Clients whose requests have all arrived before the broker reads the first of them."""

    def __init__(self, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        self._host, port = broker.bootstrap.rsplit(":", 1)
        self._port = int(port)
        self._stack = ExitStack()
        self._entered, self._sent = threading.Event(), threading.Event()
        self._done = threading.Event()
        self._expected = 0
        self.handled: list[str] = []
        """The client ids of the requests, in the order in which they were handled."""
        self.on_request: Callable[[str], None] = lambda _: None
        row = registry.SERVED[ApiKey.DESCRIBE_CLUSTER]

        def handle(node: Any, request: Any, context: Any) -> Any:
            self._note(context.client_id)
            return handler_of(row)(node, request, context)

        monkeypatch.setitem(registry.SERVED, ApiKey.DESCRIBE_CLUSTER, with_handler(row, handle))

    def connect(self) -> RawClient:
        client = self._stack.enter_context(RawClient((self._host, self._port)))
        client.send(HELLO.frame(0))
        client.receive_frame()
        return client

    def play(self, asked: dict[RawClient, bytes], expected: int) -> list[str]:
        """Let everything arrive at once; return the order of clients for a number of requests."""
        self._expected = expected
        gate = self.connect()
        gate.send(request("gate"))
        assert self._entered.wait(PATIENCE_S)
        for client, content in asked.items():
            client.send(content)
        self._sent.set()
        assert self._done.wait(PATIENCE_S)
        return self.handled

    def close(self) -> None:
        self._sent.set()
        self._stack.close()

    def _note(self, client_id: str) -> None:
        if client_id == "gate":
            self._entered.set()
            self._sent.wait(PATIENCE_S)
            return
        self.handled.append(client_id)
        self.on_request(client_id)
        if len(self.handled) == self._expected:
            self._done.set()


def request(client_id: str) -> bytes:
    body = encoder(DescribeClusterRequest, 0)(DescribeClusterRequest())
    content = frame_of(ApiKey.DESCRIBE_CLUSTER, 0, 1, client_id, body)
    return _LENGTH.pack(len(content)) + content


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Crowd]:
    with Broker() as broker:
        assert broker._process is not None
        server: Server = broker._process.server
        server.frames_per_event, server.event_ms_max = 10, 3_600_000
        made = Crowd(broker, monkeypatch)
        yield made
        made.close()


def test_a_polite_client_is_served_between_the_requests_of_a_greedy_one(crowd: Crowd) -> None:
    greedy, polite = crowd.connect(), crowd.connect()

    def ask_politely(client_id: str) -> None:
        if crowd.handled == ["greedy"]:
            polite.send(request("polite"))

    crowd.on_request = ask_politely
    order = crowd.play({greedy: request("greedy") * 200}, 201)
    assert order.index("polite") <= 20, "it waits for one turn of the other client, perhaps for two"


def test_greedy_clients_take_turns(crowd: Crowd) -> None:
    clients = {name: crowd.connect() for name in ("a", "b", "c")}
    order = crowd.play({clients[name]: request(name) * 40 for name in clients}, 120)
    rounds = [order[at : at + 30] for at in range(0, 120, 30)]
    for each in rounds:
        assert {name: each.count(name) for name in clients} == {"a": 10, "b": 10, "c": 10}


def test_a_polite_client_waits_for_one_greedy_client_only(crowd: Crowd) -> None:
    names = [f"greedy-{number}" for number in range(8)]
    greedy = {name: crowd.connect() for name in names}
    polite = crowd.connect()
    asked_after: list[int] = []

    def ask_politely(_: str) -> None:
        if not asked_after and len(set(crowd.handled)) == len(names):
            asked_after.append(len(crowd.handled))
            polite.send(request("polite"))

    crowd.on_request = ask_politely
    order = crowd.play({greedy[name]: request(name) * 100 for name in names}, 801)
    assert order.index("polite") - asked_after[0] <= 20
