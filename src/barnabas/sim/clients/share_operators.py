"""Simulated clients around share groups: what initializes their state, and what deletes records."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.node.node import Node
from barnabas.node.share.share_sessions import Place
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest
from barnabas.sim.clients.actor import Actor, Asking, Sleep, Talk
from barnabas.sim.clients.share_requests import delete_records_below
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.simulated_shares import QUEUE, QUEUE_PARTITIONS, ShareGroup, ShareGroups
from barnabas.sim.world import World

RETRY_MS = 200
PATIENCE_MS = 7_000
STATE_EPOCH = 0


class ShareFounder(Actor):
    """Initializes the state of share groups, as their group coordinator does."""

    def __init__(self, world: World, cluster: Cluster, name: str, shares: ShareGroups) -> None:
        super().__init__(world, cluster, name)
        self.shares = shares
        self._answer: Mapping[int, ErrorCode] | None = None

    def life(self) -> Talk:
        """Initialize one group after the other; members begin then."""
        for group in self.shares.groups.values():
            while not group.is_ready and not self.closing:
                yield from self._initialize(group)
                yield Sleep(RETRY_MS)

    def _initialize(self, group: ShareGroup) -> Asking:
        host = self.rng.choice(self.cluster.hosts)
        node = host.node
        topic = None if node is None else node.image.topics.get(group.topic)
        if node is None or topic is None or not topic.partitions:
            return
        self._answer = None
        numbers = range(len(topic.partitions))
        host.run_event(host.life, partial(self._ask, node, group, topic.topic_id, numbers))
        waited_ms = 0
        while self._answer is None and waited_ms < PATIENCE_MS and host.node is node:
            yield Sleep(RETRY_MS)
            waited_ms += RETRY_MS
        answer: Mapping[int, ErrorCode] | None = self._answer
        if answer is not None and set(answer.values()) == {ErrorCode.NONE}:
            group.places.update(
                {
                    Place(TopicId(bytes(topic.topic_id)), number): TopicPartition(
                        group.topic, number
                    )
                    for number in numbers
                }
            )
            group.is_ready = True
            self.world.note(self.name, f"has initialized {group.group_id}")

    def _ask(self, node: Node, group: ShareGroup, topic_id: TopicId, numbers: range) -> None:
        starts = dict.fromkeys(numbers, group.first)
        asked = node.share_states.initialize(group.group_id, topic_id, starts, STATE_EPOCH)
        asked.when_done(self._initialized, lambda _: self._initialized({}))

    def _initialized(self, answer: Mapping[int, ErrorCode]) -> None:
        self._answer = answer


class RecordDeleter(Actor):
    """Deletes the oldest records of a topic from time to time."""

    highest: int

    def life(self) -> Talk:
        """Delete up to a random offset."""
        while not self.closing:
            yield Sleep(self.rng.randint(500, 4_000))
            place = TopicPartition(QUEUE, self.rng.randrange(QUEUE_PARTITIONS))
            host = self.cluster.leader_of(place)
            if host is not None and not self.closing:
                yield from self._delete(host, place)

    def _delete(self, host: Host, place: TopicPartition) -> Asking:
        node = host.node
        found: Any = None if node is None else node.partitions.get(place)
        if found is None:
            return
        start, end = found.log.start_offset, found.high_watermark
        if end <= start:
            return
        offset = self.rng.randint(start, start + max(1, (end - start) // 2))
        request: DeleteRecordsRequest = delete_records_below(QUEUE, place.partition, offset)
        yield from self._ask_at(host, request)
        self.world.note(self.name, f"deletes records of {place} below {offset}")
