"""The leaders that a share consumer talks to: each has the assigned partitions that it leads."""

import time
from collections.abc import Callable, Iterator

from barnabas.logs import get
from barnabas.wire.cluster_wire import Node
from barnabas.wire.share_heartbeats import LAST
from barnabas.wire.share_leader import ShareLeader
from barnabas.wire.share_topics import ShareTopics
from barnabas.wire.share_values import Place
from barnabas.wire.wire_failures import LinkError

PAUSE_S = 0.2
"""The pause between two requests for metadata."""

log = get("barnabas.wire")


class ShareRoutes:
    """Spreads a member's partitions over their leaders, also when these change."""

    def __init__(self, topics: ShareTopics, new_leader: Callable[[Node], ShareLeader]) -> None:
        self._topics, self._new_leader = topics, new_leader
        self._leaders: dict[Node, ShareLeader] = {}
        self._assigned: frozenset[Place] = frozenset()
        self._not_before_s = 0.0
        self._is_stale = False

    def __iter__(self) -> Iterator[ShareLeader]:
        return iter(self._leaders.values())

    @property
    def due_s(self) -> float | None:
        """When to look the leaders up again; None if they are all known."""
        return self._not_before_s if self._is_stale else None

    def follow(self, assigned: frozenset[Place]) -> None:
        """Give each leader its partitions, after looking the leaders up if that is needed."""
        if assigned != self._assigned:
            self._assigned, self._is_stale = assigned, True
        for leader in self:
            if leader.is_stale:
                leader.is_stale, self._is_stale = False, True
        now_s = time.monotonic()
        if not self._is_stale or now_s < self._not_before_s:
            return
        self._not_before_s = now_s + PAUSE_S
        try:
            self._topics.look_up()
        except LAST:
            raise
        except LinkError as error:
            log.info("a share consumer cannot look its topics up", error=str(error))
        else:
            self._spread()

    def _spread(self) -> None:
        wanted: dict[Node, set[Place]] = {}
        for place in self._assigned:
            node = self._topics.leader(place)
            if node is not None:
                wanted.setdefault(node, set()).add(place)
        self._is_stale = sum(map(len, wanted.values())) < len(self._assigned)
        for node in wanted.keys() - self._leaders.keys():
            self._leaders[node] = self._new_leader(node)
        for node, leader in self._leaders.items():
            leader.want(wanted.get(node, set()))
