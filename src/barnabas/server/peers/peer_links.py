"""The connections to other brokers: one for each address and lane, made when first needed.

The requests of an event are sent together at its end. A connection that failed is dropped, and the
next request makes another. Nothing here retries or backs off: that is up to the caller.
"""

from typing import TYPE_CHECKING

from barnabas.effects import Address, Ask
from barnabas.logs import get
from barnabas.server.peers.peer_connection import PeerConnection
from barnabas.server.tls.tls_context import TlsContexts

if TYPE_CHECKING:
    from barnabas.server.server import Server

IDLE_MS = 60_000
WARN_EVERY_MS = 10_000

log = get("barnabas.server")


class PeerConnections:
    """All connections that this broker has made to others."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self.tls: TlsContexts | None = None
        """How connections are encrypted; None if they are not."""
        self._lanes: dict[tuple[Address, str], PeerConnection] = {}
        self._warned_ms: dict[Address, int] = {}
        self._dirty: dict[PeerConnection, None] = {}
        self._ended = False
        self.asked = 0
        self.answered = 0
        self.lost = 0
        self.bytes_out = 0
        self.bytes_in = 0
        self.quorum_asked = self.quorum_answered = 0
        self.quorum_bytes_out = self.quorum_bytes_in = 0
        """Of the metadata quorum, which has lanes of its own; the numbers above have it, too."""

    def __len__(self) -> int:
        return len(self._lanes)

    def ask(self, ask: Ask) -> None:
        """Queue a request; `flush` sends it. After `close_all` requests are dropped."""
        if self._ended:
            return
        key = ask.address, ask.lane
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = PeerConnection(self._server, self, key)
            lane.connect()
        self.asked += 1
        self.quorum_asked += lane.is_of_quorum
        lane.queue(ask)
        self._dirty[lane] = None

    def flush(self) -> None:
        """Send the queued requests."""
        while self._dirty:
            lane, _ = self._dirty.popitem()
            lane.flush()

    def forget(self, lane: PeerConnection) -> None:
        """Drop a connection; the next request of its lane makes another."""
        if self._lanes.get(lane.key) is lane:
            del self._lanes[lane.key]

    def warn_of_tls(self, address: Address, error: OSError) -> None:
        """Log why a broker cannot be reached over TLS: the first time, then every few seconds."""
        now_ms = self._server.node.timers.now_ms
        if now_ms - self._warned_ms.get(address, now_ms - WARN_EVERY_MS) < WARN_EVERY_MS:
            return
        self._warned_ms[address] = now_ms
        problem = getattr(error, "verify_message", "") or getattr(error, "reason", "") or str(error)
        event = "cannot speak TLS with another broker; compare cluster.tls_... on both"
        log.warning(event, peer=str(address), problem=problem)

    def sweep(self, now_ms: int) -> None:
        """Close idle connections."""
        for lane in list(self._lanes.values()):
            if not lane.waits and now_ms - lane.last_used_ms > IDLE_MS:
                lane.close("it is idle")

    def close_all(self) -> None:
        """Close all connections without reporting to their callers: the broker stops."""
        self._ended = True
        for lane in list(self._lanes.values()):
            lane.drop()
        self._lanes.clear()
        self._dirty.clear()
