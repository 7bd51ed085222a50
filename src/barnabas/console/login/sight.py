"""What a user of the brokers may see: the topics and groups that ACLs let the user describe.

The watcher reads the cluster as the console's own user. A session that logged in as a user of the
brokers gets only the part of each state that this user may describe; the brokers are asked for it
every half minute.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from barnabas.model.errors import ErrorCode
from barnabas.monitor.states import ClusterState
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.wire_failures import LinkError

FRESH_S = 30.0


@dataclass(frozen=True, slots=True)
class Visible:
    """The names that a user may know."""

    topics: frozenset[str]
    groups: frozenset[str]


def ask_visible(wire: Wire) -> Visible:
    """Ask the brokers, as the user of the connections, which topics and groups there are."""
    topics = {each.name for each in wire.metadata().topics if each.error_code == ErrorCode.NONE}
    groups: set[str] = set()
    for node in wire.nodes():
        try:
            answer = wire.ask(node, ListGroupsRequest(), ListGroupsResponse)
        except LinkError:  # the groups of a broker that is away are not shown
            continue
        groups.update(each.group_id for each in answer.groups)
    return Visible(frozenset(filter(None, topics)), frozenset(groups))


class Sight:
    """The part of each state that one session may see."""

    def __init__(
        self, ask: Callable[[], Visible], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._now_s = now_s
        self._lock = threading.Lock()
        self._visible: Visible | None = None
        self._asked_s = 0.0
        self._last: tuple[ClusterState, Visible, ClusterState] | None = None

    def of(self, state: ClusterState) -> ClusterState:
        """Return the part of a state that the user may see."""
        with self._lock:
            visible = self._fresh()
            if self._last is None or self._last[0] is not state or self._last[1] is not visible:
                self._last = state, visible, part_of(state, visible)
            return self._last[2]

    def _fresh(self) -> Visible:
        if self._visible is None or self._now_s() - self._asked_s >= FRESH_S:
            self._visible = self._ask()
            self._asked_s = self._now_s()
        return self._visible


def part_of(state: ClusterState, visible: Visible) -> ClusterState:
    """Return a state with some topics and groups."""
    topics = {
        name: replace(topic, groups=tuple(each for each in topic.groups if each in visible.groups))
        for name, topic in state.topics.items()
        if name in visible.topics
    }
    groups = {
        name: replace(
            group, partitions=[each for each in group.partitions if each.topic in visible.topics]
        )
        for name, group in state.groups.items()
        if name in visible.groups
    }
    return replace(state, topics=topics, groups=groups)
