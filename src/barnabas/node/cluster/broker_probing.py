"""Detects brokers whose process is gone, before their session ends.

A killed broker sends no last message, and a session lasts seconds. But its port refuses connections
at once; the port of a broker that is slow or partitioned never does. So the controller sends each
broker a probe now and then. If the connection is refused twice in a row, quickly, the process is
gone, and other brokers take over without waiting for the end of the session.

Fencing a live broker costs little: the controller unfences it with its next heartbeat.
"""

from collections.abc import Callable

from barnabas.model.ids import NodeId
from barnabas.model.timers import Timers
from barnabas.node.cluster.metadata_quorum import Quorum
from barnabas.node.cluster.peer_requests import Peers
from barnabas.protocol.messages.api_versions import ApiVersionsRequest

LANE = "probe"
AGAIN_MS = 50
QUICKLY_MS = 100
"""A refusal that takes longer may come from a network that lost packets."""
REFUSALS = 2


class Probing:
    """The controller's probes."""

    def __init__(
        self,
        me: NodeId,
        timeout_ms: int,
        quorum: Quorum,
        peers: Peers,
        timers: Timers,
        is_gone: Callable[[NodeId], None],
    ) -> None:
        self._me = me
        self._timeout_ms = timeout_ms
        self._quorum = quorum
        self._peers = peers
        self._timers = timers
        self._is_gone = is_gone
        self._refusals: dict[NodeId, int] = {}
        self._asked: set[NodeId] = set()

    def probe_all(self) -> None:
        """Probe every unfenced broker that has no probe under way."""
        for broker in self._quorum.require_draft().brokers.values():
            if not broker.fenced and broker.node_id not in self._asked:
                self._ask(NodeId(broker.node_id))

    def note_heartbeat(self, node_id: int) -> None:
        """Forget refusals of a broker that sends a heartbeat."""
        self._refusals.pop(NodeId(node_id), None)

    def _ask(self, node_id: NodeId) -> None:
        if node_id == self._me:
            return
        self._asked.add(node_id)
        asked_ms = self._timers.now_ms
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1")
        answer = self._peers.ask(node_id, request, lane=LANE, timeout_ms=self._timeout_ms)
        answer.when_done(lambda _: self._answered(node_id), lambda _: self._lost(node_id, asked_ms))

    def _answered(self, node_id: NodeId) -> None:
        self._asked.discard(node_id)
        self._refusals.pop(node_id, None)

    def _lost(self, node_id: NodeId, asked_ms: int) -> None:
        self._asked.discard(node_id)
        if self._timers.now_ms - asked_ms > QUICKLY_MS or not self._quorum.is_controller:
            self._refusals.pop(node_id, None)
            return
        self._refusals[node_id] = self._refusals.get(node_id, 0) + 1
        if self._refusals[node_id] < REFUSALS:
            self._asked.add(node_id)
            self._timers.after(AGAIN_MS, lambda: self._ask(node_id))
        else:
            del self._refusals[node_id]
            self._is_gone(node_id)
