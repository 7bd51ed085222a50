"""Tests requests between brokers over real sockets: their order, sizes and ends."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import Any

import pytest

from barnabas.effects import Address
from barnabas.handlers.registry import PEER_SERVED
from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.pending import Pending
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import encoder
from barnabas.protocol.headers import parse_request_header, response_header
from barnabas.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseTopicSnapshot,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.server.peers.peer_links import IDLE_MS
from barnabas.server.peers.peer_versions import served_versions
from barnabas.testing.raw_client import RawClient
from tests.support.talk.peer_pair import LONG_MS, Pair
from tests.support.talk.rows import row_of

LARGE = 30 * 1024 * 1024
REPLY_HEAD = Struct(">iib")
LISTING_HEAD = Struct(">ii")
LENGTH = Struct(">i")
HELLO_NUMBER = 1
"""The correlation id of the ApiVersions request."""

hello = ApiVersionsRequest(client_software_name="broker", client_software_version="1")

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def beat(number: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=number, broker_epoch=number)


class Beats:
    """A handler that answers at once, or when a test says so."""

    def __init__(self) -> None:
        self.held: list[Pending[BrokerHeartbeatResponse]] = []
        self.hold = False
        self.asked: list[int] = []

    def handle(self, _: object, request: BrokerHeartbeatRequest, context: Any) -> object:
        assert context.caller.listener.is_peer
        context.throttle_ms = LONG_MS  # clients must obey it, brokers need not
        self.asked.append(request.broker_id)
        answer = BrokerHeartbeatResponse(throttle_time_ms=request.broker_id)
        if not self.hold:
            return answer
        pending: Pending[BrokerHeartbeatResponse] = Pending()
        self.held.append(pending)
        return pending.map(lambda _: answer)

    def release(self) -> None:
        held, self.held = self.held, []
        for pending in held:
            pending.complete(BrokerHeartbeatResponse())


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Beats:
    made = Beats()
    monkeypatch.setitem(
        PEER_SERVED, ApiKey.BROKER_HEARTBEAT, row_of(ApiKey.BROKER_HEARTBEAT, 0, 2, made.handle)
    )
    return made


def large_answer(_: object, request: FetchSnapshotRequest, __: object) -> FetchSnapshotResponse:
    content = bytes([request.max_bytes % 251]) * request.max_bytes
    piece = FetchSnapshotResponsePartitionSnapshot(unaligned_records=content)
    return FetchSnapshotResponse(topics=[FetchSnapshotResponseTopicSnapshot(partitions=[piece])])


ALL_OF_TODAY = {ApiKey.BROKER_HEARTBEAT: (0, 2), ApiKey.BROKER_REGISTRATION: (0, 4)}


@contextmanager
def stranger(
    pair: Pair, talk: Talk, served: dict[ApiKey, tuple[int, int]] | None = ALL_OF_TODAY
) -> Iterator[Address]:
    """A stub that reports its API versions, and then answers as a test wants."""

    ended: list[asyncio.Event] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.Event())
        end = ended[-1]
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            if served is not None:
                await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                writer.write(listing(served))
            await talk(reader, writer)
        writer.close()
        end.set()

    server = pair.loop.run_until_complete(asyncio.start_server(answer, "127.0.0.1", 0))
    yield Address(*server.sockets[0].getsockname())
    server.close()
    pair.asker.peers.sweep(pair.asker.node.timers.now_ms + IDLE_MS + 1)
    for end in ended:
        pair.wait(end.wait())
    pair.loop.run_until_complete(asyncio.sleep(0))


def listing(served: dict[ApiKey, tuple[int, int]]) -> bytes:
    """Return the response to the first request of a connection."""
    keys = [
        ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in served.items()
    ]
    body = encoder(ApiVersionsResponse, 4)(ApiVersionsResponse(api_keys=keys))
    return LISTING_HEAD.pack(len(body) + 4, HELLO_NUMBER) + body


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


# --- order ---


def test_answers_come_in_the_order_of_the_questions(pair: Pair, beats: Beats) -> None:
    asked = [pair.ask(beat(number)) for number in range(1000)]
    answers = pair.wait(asyncio.gather(*asked))
    assert [answer.throttle_time_ms for answer in answers] == list(range(1000))
    assert [answer.throttle_time_ms for answer in pair.heard] == list(range(1000))
    assert beats.asked == list(range(1000))
    assert len(pair.asker.peers) == 1
    counted = pair.asker.peers
    assert (counted.asked, counted.answered, counted.lost) == (1000, 1000, 0)


def test_lanes_do_not_wait_for_each_other(pair: Pair, beats: Beats) -> None:
    beats.hold = True
    slow = pair.ask(beat(1), lane="one")
    behind, quick = pair.ask(hello, lane="one"), pair.ask(hello, lane="two")
    assert pair.wait(quick).error_code == 0
    assert not slow.done()
    assert not behind.done()
    pair.answerer.run_event(beats.release)
    assert pair.wait(behind).error_code == 0
    assert [type(answer).__name__ for answer in pair.heard] == [
        "ApiVersionsResponse",
        "BrokerHeartbeatResponse",
        "ApiVersionsResponse",
    ]


def test_a_failing_listener_does_not_stop_the_others(pair: Pair, beats: Beats) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("a defect")

    pair.ask(beat(1), done=fail)
    assert pair.wait(pair.ask(beat(2))).throttle_time_ms == 2


# --- sizes ---


def test_large_answers(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        PEER_SERVED, ApiKey.FETCH_SNAPSHOT, row_of(ApiKey.FETCH_SNAPSHOT, 0, 1, large_answer)
    )
    sizes = [LARGE, 3, 300_000, LARGE, 262_144, 9_000_000, 0, 9_000_001]
    digests: list[bytes] = []

    def on_response(answer: FetchSnapshotResponse) -> None:
        # Read it now: the buffer is reused right after.
        digests.append(sha256(answer.topics[0].partitions[0].unaligned_records or b"").digest())

    asked = [pair.ask(FetchSnapshotRequest(max_bytes=size), done=on_response) for size in sizes]
    pair.wait(asyncio.gather(*asked))
    assert digests == [sha256(bytes([size % 251]) * size).digest() for size in sizes]
    assert pair.asker.peers.bytes_in > sum(sizes)


def test_large_questions(pair: Pair) -> None:
    """The request is larger than a client may send, except for Produce."""
    names = [MetadataRequestTopic(name="x" * 30_000) for _ in range(700)]
    answer = pair.wait(pair.ask(MetadataRequest(topics=names)))
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert len(answer.topics) == 700


def test_answers_that_come_byte_by_byte(pair: Pair) -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in (1, 2):
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            for byte in reply(number, bytes(16)):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0)

    with stranger(pair, trickle) as address:
        asked = [pair.ask(beat(number), address=address) for number in (1, 2)]
        answers = pair.wait(asyncio.gather(*asked))
    assert [type(answer) for answer in answers] == [BrokerHeartbeatResponse] * 2


def reply(number: int, body: bytes) -> bytes:
    """A heartbeat response of zeros: no error, all flags false, no tags."""
    body = body[:10]
    return REPLY_HEAD.pack(len(body) + 5, HELLO_NUMBER + number, 0) + body


# --- versions ---


async def heartbeats(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each heartbeat with its version in the throttle time."""
    while True:
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        header = parse_request_header(memoryview(frame))
        head = response_header(ApiKey.BROKER_HEARTBEAT, header.api_version, header.correlation_id)
        answer = BrokerHeartbeatResponse(throttle_time_ms=header.api_version)
        body = head + encoder(BrokerHeartbeatResponse, header.api_version)(answer)
        writer.write(LENGTH.pack(len(body)) + body)


def through_peers(pair: Pair, address: Address) -> "asyncio.Future[Any]":
    """Send a request as the node does; the future is the response, or the error."""
    future: asyncio.Future[Any] = pair.loop.create_future()
    node = pair.asker.node

    def ask() -> None:
        answer = node.peers.ask_at(address, beat(1), timeout_ms=LONG_MS)
        answer.when_done(future.set_result, lambda error: future.set_result(str(error)))

    pair.asker.run_event(ask)
    return future


@pytest.mark.parametrize(
    ("served", "version"),
    [
        ({ApiKey.BROKER_HEARTBEAT: (0, 2), ApiKey.BROKER_REGISTRATION: (0, 4)}, 2),
        ({ApiKey.BROKER_HEARTBEAT: (0, 1), ApiKey.BROKER_REGISTRATION: (0, 4)}, 1),
        ({ApiKey.BROKER_HEARTBEAT: (0, 0), ApiKey.BROKER_REGISTRATION: (0, 9)}, 0),
        ({ApiKey.BROKER_HEARTBEAT: (1, 99), ApiKey.BROKER_REGISTRATION: (0, 99)}, 2),
        ({}, 2),  # release 0.1.0 does not list the inter-broker APIs
    ],
)
def test_brokers_use_the_highest_version_that_both_know(
    pair: Pair, served: dict[ApiKey, tuple[int, int]], version: int
) -> None:
    with stranger(pair, heartbeats, served) as address:
        asked = [through_peers(pair, address) for _ in range(2)]
        answers = pair.wait(asyncio.gather(*asked))
        assert [answer.throttle_time_ms for answer in answers] == [version] * 2
        assert pair.wait(through_peers(pair, address)).throttle_time_ms == version
    assert len(pair.asker.peers) <= 1


def test_brokers_that_have_no_version_in_common(pair: Pair) -> None:
    served = {ApiKey.BROKER_HEARTBEAT: (3, 4), ApiKey.BROKER_REGISTRATION: (0, 4)}
    with stranger(pair, heartbeats, served) as address:
        said = pair.wait(through_peers(pair, address))
        assert "it serves versions 3 to 4 of BrokerHeartbeat; this release knows 0 to 2" in said
        assert pair.wait(pair.ask(beat(1), address=address)) is None  # which knows no other version
        assert len(pair.asker.peers) == 1, "the connection still serves other requests"


def test_a_slow_answer_to_the_first_question_does_not_end_the_connection(pair: Pair) -> None:
    """On a slow link requests may time out before the connection can be used."""
    go_on, connections = asyncio.Event(), 0

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        await go_on.wait()
        writer.write(listing(ALL_OF_TODAY))
        await heartbeats(reader, writer)

    with stranger(pair, slow, None) as address:
        patient = pair.ask(beat(1), address=address)
        assert pair.wait(pair.ask(beat(2), address=address, timeout_ms=20)) is None
        assert pair.asker.peers.lost == 1
        go_on.set()
        assert pair.wait(patient).throttle_time_ms == 2
        assert connections == 1


def test_a_peer_that_does_not_know_the_version_of_the_first_question() -> None:
    keys = [ApiVersion(api_key=ApiKey.BROKER_HEARTBEAT, min_version=0, max_version=1)]
    older = ApiVersionsResponse(error_code=35, api_keys=keys)
    found = served_versions(memoryview(encoder(ApiVersionsResponse, 0)(older)))
    assert found[ApiKey.BROKER_HEARTBEAT] == (0, 1)
    refusal = encoder(ApiVersionsResponse, 4)(ApiVersionsResponse(error_code=42))
    with pytest.raises(WireError, match="error 42"):
        served_versions(memoryview(refusal))


def test_what_brokers_alone_may_ask_is_listed_to_brokers_alone(pair: Pair) -> None:
    to_broker = pair.wait(pair.ask(hello))
    to_client = pair.wait(pair.ask(hello, address=Address(*pair.clients)))
    listed = {each.api_key for each in to_broker.api_keys}
    assert listed - {each.api_key for each in to_client.api_keys} == set(PEER_SERVED)


# --- ends ---


def test_a_question_that_takes_too_long_ends_all_on_its_lane(pair: Pair, beats: Beats) -> None:
    beats.hold = True
    asked = [pair.ask(beat(1), timeout_ms=20), pair.ask(beat(2))]
    assert pair.wait(asyncio.gather(*asked)) == [None, None]
    assert pair.asker.peers.lost == 2
    beats.hold = False
    assert pair.wait(pair.ask(beat(3))).throttle_time_ms == 3
    pair.answerer.run_event(beats.release)
    assert pair.wait(pair.ask(beat(4))).throttle_time_ms == 4, "a late response arrived"


def test_no_process_listens(pair: Pair) -> None:
    address = Address("127.0.0.1", free_port())
    asked = [pair.ask(beat(number), address=address) for number in range(3)]
    assert pair.wait(asyncio.gather(*asked)) == [None] * 3
    assert len(pair.asker.peers) == 0


def test_the_kernel_connects_a_socket_to_itself(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may connect a socket to itself, if no process listens on an ephemeral port."""
    address = Address("127.0.0.1", free_port())

    class Own(socket.socket):
        def connect_ex(self, place: Any) -> int:
            self.bind(place)
            return super().connect_ex(place)

    monkeypatch.setattr("barnabas.server.peers.peer_connection.socket.socket", Own)
    assert pair.wait(pair.ask(beat(1), address=address)) is None
    assert pair.asker.peers.bytes_out == 0


def test_a_name_is_looked_up(pair: Pair, beats: Beats) -> None:
    address = Address("localhost", pair.address.port)
    assert pair.wait(pair.ask(beat(1), address=address)).throttle_time_ms == 1


def test_an_unknown_name(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert pair.wait(pair.ask(beat(1), address=Address("nobody", 1))) is None


def test_no_more_sockets(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("barnabas.server.peers.peer_connection.socket.socket", refuse)
    refused = pair.ask(beat(1))
    monkeypatch.undo()
    assert pair.wait(refused) is None
    assert pair.wait(pair.ask(hello)).error_code == 0


@pytest.mark.parametrize(
    ("said", "hangs_up"),
    [
        (b"", True),
        (reply(1, bytes(16))[:-1], True),
        (REPLY_HEAD.pack(1_000_000, 1, 0) + bytes(500_000), True),
        (reply(2, bytes(16)), False),
        (REPLY_HEAD.pack(2**31 - 1, 1, 0), False),
        (REPLY_HEAD.pack(-1, 1, 0), False),
        (REPLY_HEAD.pack(3, 1, 0), False),
        (REPLY_HEAD.pack(4, 1, 0)[:8], False),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False),
    ],
)
@pytest.mark.parametrize("greets", [True, False])
def test_a_peer_that_makes_no_sense_or_dies(
    pair: Pair, said: bytes, hangs_up: bool, greets: bool
) -> None:
    ended = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(said)
        if not hangs_up:
            await reader.read()  # until the other side has closed
            ended.set()

    with stranger(pair, talk, ALL_OF_TODAY if greets else None) as address:
        assert pair.wait(pair.ask(beat(1), address=address)) is None
        if not hangs_up:
            pair.wait(ended.wait())
    assert len(pair.asker.peers) == 0


def test_an_unexpected_response(pair: Pair) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(reply(1, bytes(16)) + reply(2, bytes(16)))
        await reader.read()

    with stranger(pair, talk) as address:
        assert pair.wait(pair.ask(beat(1), address=address)) is not None
    assert len(pair.asker.peers) == 0


def test_unused_files_are_closed(pair: Pair, beats: Beats) -> None:
    beats.hold = True
    pair.wait(pair.ask(hello, lane="idle"))
    waiting = pair.ask(beat(1), lane="busy")
    later_ms = pair.asker.node.timers.now_ms + IDLE_MS + 1
    pair.asker.peers.sweep(later_ms)
    assert len(pair.asker.peers) == 1
    pair.wait(pair.ask(hello, lane="idle"))  # by now the stub has both requests
    pair.answerer.run_event(beats.release)
    assert pair.wait(waiting) is not None


def test_a_killed_broker_sends_nothing(pair: Pair, beats: Beats) -> None:
    beats.hold = True
    asked = pair.ask(beat(1))
    pair.wait(pair.ask(hello, lane="other"))
    pair.asker.close_all()
    assert len(pair.asker.peers) == 0
    assert not asked.done()
    assert pair.asker.peers.lost == 0
    pair.ask(beat(2))
    assert len(pair.asker.peers) == 0, "it sends requests after its end"


# --- the listeners ---


def test_clients_and_brokers_come_in_by_different_doors(pair: Pair, beats: Beats) -> None:
    assert pair.wait(pair.ask(beat(1))).throttle_time_ms == 1
    assert pair.wait(pair.ask(beat(2), address=Address(*pair.clients))) is None
    assert pair.wait(pair.ask(hello, address=Address(*pair.clients))).error_code == 0
    assert beats.asked == [1]


def test_limits_are_for_clients(tmp_path: Path, beats: Beats) -> None:
    limits = {
        "performance.max_connections": 1,
        "performance.max_connections_per_ip": 1,
    }
    pair = Pair(tmp_path, limits)
    try:
        asked = [pair.ask(beat(number), lane=str(number)) for number in range(5)]
        assert None not in pair.wait(asyncio.gather(*asked))
        with RawClient(pair.clients) as client:
            refused = pair.loop.run_in_executor(None, client.was_closed)
            assert pair.wait(refused)
    finally:
        pair.close()
