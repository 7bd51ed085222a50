"""Tests that a listener chooses the sessions of its connections: another protocol is possible."""

from collections.abc import Iterator

import pytest

from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.server.connection import Connection
from barnabas.server.foreign import ForeignProtocol
from barnabas.server.server import Server
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient, framed

LARGE = bytes(300_000)


class Echo:
    """A session of a small protocol: the response to each frame is the frame in capitals."""

    takes_short_frames = False

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def handle(self, frame: memoryview) -> None:
        self._connection.queue([bytes(frame).upper()])

    def check(self, size: int, head: Buffer) -> None:
        if bytes(head) == b"no":
            raise WireError("invalid frame")

    def charge(self, duration_ns: int) -> None:
        """Charge no client."""

    def has_room(self) -> bool:
        return True

    def recognise(self, first: bytes) -> ForeignProtocol | None:
        return ForeignProtocol("a question", b"which protocol?") if first == b"what" else None

    def close(self) -> None:
        pass


@pytest.fixture
def addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """The addresses of the Kafka listener and of the other one."""
    bound: list[tuple[str, int]] = []
    listen = Server.listen

    def listen_on_both(server: Server, *, peers: bool) -> None:
        if not peers:
            bound.append(server.bind("127.0.0.1", 0, open_session=Echo))
        listen(server, peers=peers)

    monkeypatch.setattr(Server, "listen", listen_on_both)
    with Broker() as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        yield (host, int(port)), bound[0]


def test_two_protocols_are_served_side_by_side(
    addresses: tuple[tuple[str, int], tuple[str, int]],
) -> None:
    kafka, echo = addresses
    with RawClient(kafka) as first, RawClient(echo) as second:
        for _ in range(2):
            assert first.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
            second.send(framed(b"good morning") + framed(b"good evening"))
            assert second.receive_frame() == b"GOOD MORNING"
            assert second.receive_frame() == b"GOOD EVENING"


def test_frames_are_cut_and_checked_for_it(
    addresses: tuple[tuple[str, int], tuple[str, int]],
) -> None:
    _, echo = addresses
    with RawClient(echo) as client:
        client.send(framed(LARGE))
        assert client.receive_frame() == LARGE
        client.send(framed(b"no" + LARGE))
        assert client.was_closed()
    with RawClient(echo) as client:
        client.send(b"what")
        assert client.socket.recv(100) == b"which protocol?"
