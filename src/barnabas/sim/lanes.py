"""Simulates the connections between brokers: one for each other broker and lane.

It works like `server/peers/peer_links.py`: requests are pipelined and responses come in order. If a
response does not come in time, the connection is closed and all requests on it fail.
"""

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.effects import Address, Ask
from barnabas.protocol.codec import decode_exact
from barnabas.protocol.headers import parse_request_header, response_header
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from barnabas.sim.frames import frame_of
from barnabas.sim.network import Link
from barnabas.sim.world import InvariantError
from barnabas.storage.producers import RAISES_EPOCH_FROM

if TYPE_CHECKING:
    from barnabas.sim.host import Host

WRITE_TXN_MARKERS = 27


class Asked(NamedTuple):
    """A request that waits for its response."""

    ask: Ask
    correlation_id: int


class Lane:
    """The connection to one other broker for one purpose."""

    def __init__(self, host: "Host", address: Address) -> None:
        self._host = host
        self._life = host.life
        self._address = address
        self._link: Link | None = None
        self._asked: deque[Asked] = deque()
        self._correlation_id = 0

    def ask(self, ask: Ask) -> None:
        """Send a request over the connection, or over a new one; it fails if the other broker is
        down.
        """
        host, ask = self._host, ask.enveloped()
        self._correlation_id += 1
        asked = Asked(ask, self._correlation_id)
        link = self._connected()
        if link is None:
            host.world.after(host.delay_ms(), lambda: self._fail_all([asked]))
            return
        self._asked.append(asked)
        link.send(frame_of(ask.api_key, ask.api_version, asked.correlation_id, host.name, ask.body))
        host.world.after(ask.timeout_ms, lambda: self._time_out(asked))

    def close(self) -> None:
        """Close the connection when the process ends."""
        link, self._link = self._link, None
        self._asked.clear()
        if link is not None:
            link.cut()

    def _connected(self) -> Link | None:
        if self._link is not None and self._link.is_open:
            return self._link
        self._lost(self._link)
        other = self._host.neighbours.get(self._address)
        if other is None or other.node is None:
            return None
        link: Link

        def on_answer(content: bytes) -> None:
            if self._link is link:
                self._on_response(content)

        def on_lost() -> None:
            self._lost(link)

        self._link = link = Link(
            self._host.world, other, self._host.name, on_answer, on_lost, peer=True
        )
        link.is_lost_on_break = ends_old_transaction
        return link

    def _on_response(self, content: bytes) -> None:
        ask, correlation_id = self._asked.popleft()
        head = response_header(ask.api_key, ask.api_version, correlation_id)
        if not content.startswith(head):
            raise InvariantError(f"{self._host.name} got a response to another request")
        body = memoryview(content)[len(head) :]
        self._host.run_event(self._life, lambda: ask.done(body))

    def _time_out(self, asked: Asked) -> None:
        waits = any(one is asked for one in self._asked)
        if waits and self._life == self._host.life:
            self._host.world.note(self._host.name, f"timed out waiting for {self._address}")
            link = self._link
            if link is not None:
                link.cut()
            self._lost(link)

    def _lost(self, link: Link | None) -> None:
        if self._link is link:
            self._link = None
            left, self._asked = list(self._asked), deque()
            self._fail_all(left)

    def _fail_all(self, left: list[Asked]) -> None:
        for asked in left:
            done = asked.ask.done
            self._host.world.after(
                0, partial(self._host.run_event, self._life, partial(done, None))
            )


def ends_old_transaction(frame: bytes) -> bool:
    """Return whether a request has transaction markers from before KIP-890.

    Such a marker may end the producer's next transaction if it arrives late, as in Kafka.
    """
    header = parse_request_header(memoryview(frame))
    if header.api_key != WRITE_TXN_MARKERS:
        return False
    request = decode_exact(WriteTxnMarkersRequest, header.api_version, frame[header.body :])
    return any(marker.transaction_version < RAISES_EPOCH_FROM for marker in request.markers)


class Lanes:
    """All connections to other brokers during one life of a broker."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._lanes: dict[tuple[Address, str], Lane] = {}

    def ask(self, ask: Ask) -> None:
        """Send a request on its lane."""
        key = (ask.address, ask.lane)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(self._host, ask.address)
        lane.ask(ask)

    def close(self) -> None:
        """Close every connection."""
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()
