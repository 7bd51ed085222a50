"""Looking after brokers that have not said a word: is there still a process?

A broker that is killed sends no farewell, and a session lasts seconds. But its port refuses
connections at once, which a broker that is only slow, or cut off, never does. The controller
therefore asks each broker for a sign of life now and then; where that is refused twice in a row,
quickly, nobody is there, and others may take over without waiting for the session to end.

Fencing a broker that lives costs a moment and nothing else: it is let in again with its next
heartbeat.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.model.ids import NodeId
from barnabas.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from barnabas.node.node import Node

LANE = "probe"
AGAIN_MS = 50
QUICKLY_MS = 100
"""A refusal that took longer may be a network that lost something."""
REFUSALS = 2


class Probing:
    """The controller's questions to brokers."""

    def __init__(self, node: "Node", is_gone: Callable[[NodeId], None]) -> None:
        self._node = node
        self._is_gone = is_gone
        self._refusals: dict[NodeId, int] = {}
        self._asked: set[NodeId] = set()

    def look_around(self) -> None:
        """Ask everybody who is let in, unless they are being asked."""
        for broker in self._node.draft.brokers.values():
            if not broker.fenced and broker.node_id not in self._asked:
                self._ask(NodeId(broker.node_id))

    def heard_of(self, node_id: int) -> None:
        """Take a broker's own word for it."""
        self._refusals.pop(NodeId(node_id), None)

    def _ask(self, node_id: NodeId) -> None:
        node = self._node
        if node_id == node.node_id:
            return
        self._asked.add(node_id)
        asked_ms = node.timers.now_ms
        timeout_ms = node.settings.cluster.broker_session_timeout_ms
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1")
        answer = node.peers.ask(node_id, request, lane=LANE, timeout_ms=timeout_ms)
        answer.when_done(lambda _: self._answered(node_id), lambda _: self._lost(node_id, asked_ms))

    def _answered(self, node_id: NodeId) -> None:
        self._asked.discard(node_id)
        self._refusals.pop(node_id, None)

    def _lost(self, node_id: NodeId, asked_ms: int) -> None:
        self._asked.discard(node_id)
        if self._node.timers.now_ms - asked_ms > QUICKLY_MS or not self._node.is_controller:
            self._refusals.pop(node_id, None)
            return
        self._refusals[node_id] = self._refusals.get(node_id, 0) + 1
        if self._refusals[node_id] < REFUSALS:
            self._asked.add(node_id)
            self._node.timers.after(AGAIN_MS, lambda: self._ask(node_id))
        else:
            del self._refusals[node_id]
            self._is_gone(node_id)
