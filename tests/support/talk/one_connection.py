"""A broker and one connection to it, driven by a test.

The broker is a real node on a disk in memory, and the connection is the server's own. Everything
that takes time (a sync, a socket without room, a quota's pause) ends when the test says so.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from barnabas.metadata.security_records import ScramCredentialChanged
from barnabas.model.callers import CLIENT_LISTENER, Listener
from barnabas.model.security_settings import ListenerSettings, SecuritySettings
from barnabas.model.settings import BrokerSettings, PerformanceSettings, Settings
from barnabas.protocol.apis import KEYS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import response_header
from barnabas.protocol.message import Message
from barnabas.server.edge_ports import AcceptedConnection
from barnabas.sim.edge import Limits, SimServer, Wire
from barnabas.sim.frames import frame_of
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.storage.names import LOG_SUFFIX
from tests.support.talk.edge import Edge

STEP_MS = 1_000
_LENGTH = Struct(">i")


class Asked(NamedTuple):
    """A request that the client sends."""

    request: Message
    version: int
    is_answered: bool = True

    @property
    def key(self) -> int:
        """The API."""
        return KEYS[type(self.request).__name__]

    def frame(self, number: int) -> bytes:
        """Return its bytes, including the length."""
        body = encoder(type(self.request), self.version)(self.request)
        content = frame_of(self.key, self.version, number, "client", body)
        return _LENGTH.pack(len(content)) + content


class OneConnection:
    """The broker, its connection, and its environment."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        quota: int = 0,
        rooms: Sequence[int] = (),
        hold_syncs: bool = False,
        listener: Listener = CLIENT_LISTENER,
        listeners: tuple[ListenerSettings, ...] = (),
        security: SecuritySettings | None = None,
        credentials: Sequence[ScramCredentialChanged] = (),
    ) -> None:
        settings = Settings(
            broker=BrokerSettings(data_dir="data"),
            listeners=listeners,
            security=security or SecuritySettings(),
            performance=PerformanceSettings(
                producer_quota_bytes_per_second=quota, consumer_quota_bytes_per_second=quota
            ),
        )
        self.disk = MemoryDisk()
        self.edge = Edge(self.disk, settings)
        self.edge.node.authentication.first_admin = credentials
        self.edge.start()
        self.edge.hold_syncs = hold_syncs
        self.answers: list[bytes] = []
        self.problems: list[str | Exception] = []
        self._queue: deque[Callable[[], None]] = deque()
        self._rooms: Iterator[int] = iter(rooms)
        self._server = SimServer(
            self.edge.node, limits or Limits(), self._queue.append, self._closed
        )
        self.connect(listener)

    def connect(self, listener: Listener) -> None:
        """Open a connection in place of the last."""
        self._wire = Wire(self.answers.append, self._room)
        self.connection = self._server.accept(self._wire, "client", listener=listener)

    def arrive(self, content: bytes) -> None:
        """Deliver bytes to the broker."""
        self._wire.arrive(content)
        self._event(lambda: self._server.readable(self.connection))

    @property
    def unread_bytes(self) -> int:
        """The number of bytes that the broker has not read."""
        return self._wire.unread_bytes

    def end(self) -> None:
        """Close the connection at the client."""
        self._wire.end()
        self._event(lambda: self._server.readable(self.connection))

    def turn(self) -> None:
        """Run the next waiting event, if there is one."""
        if self._queue:
            self._event(self._queue.popleft())

    def pass_time(self, duration_ms: int = STEP_MS) -> None:
        """Let time pass, so that pauses end."""
        self.edge.pass_time(duration_ms)
        self._settle()

    def release(self) -> None:
        """Complete the pending syncs."""
        self.edge.release()
        self._settle()

    def finish(self, answers: int) -> None:
        """Run everything that is due, until this many responses have arrived."""
        for _ in range(2_000):
            while self._queue:
                self.turn()
            self.release()
            if len(self.answers) >= answers or self.connection.closed:
                return
            self.pass_time()
        raise AssertionError(f"{len(self.answers)} of {answers} responses arrived")

    def logs(self, topics: Sequence[str]) -> dict[str, bytes]:
        """Return the content of the first partition of each topic."""
        found = {}
        for topic in topics:
            folder = f"data/topics/{topic}/0"
            names = sorted(name for name in self.disk.list(folder) if name.endswith(LOG_SUFFIX))
            found[topic] = b"".join(self.disk.read_bytes(f"{folder}/{name}") for name in names)
        return found

    def _event(self, callback: Callable[[], None]) -> None:
        callback()
        self._settle()

    def _settle(self) -> None:
        while self._server.dirty or self.edge.node.outbox:
            self._server.flush()
            self.edge.settle()

    def _room(self) -> int:
        return next(self._rooms, 1 << 30)

    def _closed(self, connection: AcceptedConnection, problem: str | Exception) -> None:
        del connection
        self.problems.append(problem)


def decoded(asked: Sequence[Asked], answers: Sequence[bytes]) -> list[Message]:
    """Return the responses, without fields that depend on the time; fail if one is out of order."""
    found = []
    numbered = [(number, one) for number, one in enumerate(asked) if one.is_answered]
    for (number, one), content in zip(numbered, answers, strict=False):
        head = response_header(one.key, one.version, number)
        assert content.startswith(head), f"response {number} is out of order"
        response = decode_exact(response_class(one.key), one.version, content[len(head) :])
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = 0
        found.append(response)
    return found
