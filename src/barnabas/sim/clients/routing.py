"""Finds the broker for a request: a partition's leader, a key's coordinator, or any broker.

Like real clients, it uses what it learned until a broker reports an error or does not answer. Then
it asks any broker again. It ignores metadata with an older leader epoch than the known one. With
one broker there is nothing to learn.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.sim.clients.dialogue import Asking
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import Cluster

GROUP, TRANSACTION = 0, 1

Key = tuple[int, str]
"""The key of a coordinator: a group or a transactional id."""
Place = TopicPartition | Key | None
AskAt = Callable[[Host, Message], Asking]

STALE_ROUTE_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CORRUPT_MESSAGE,
}
"""Errors after which a client looks up the broker again."""


class Leadership(NamedTuple):
    """The leader of a partition, and its replicas."""

    node_id: int
    epoch: int
    replicas: tuple[int, ...]


class Routes:
    """The leaders and coordinators that one client knows."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rng = next(iter(cluster.by_id.values())).world.rng
        self._leaderships: dict[TopicPartition, Leadership] = {}
        self._epochs: dict[TopicPartition, int] = {}
        """The latest leader epoch that the client knows for each partition."""
        self._coordinators: dict[Key, int] = {}
        self._read_replicas: dict[TopicPartition, int] = {}
        self.reads_from_followers = False
        """Whether the client fetches from any replica (KIP-392) instead of from leaders only."""

    def find(self, ask_at: AskAt, request: Message) -> Asking:
        """Return the broker for a request; look it up if it is not known."""
        cluster = self._cluster
        if cluster.is_lone:
            return cluster.hosts[0]
        place = routing_key(request)
        if place is None:
            return self._any_broker()
        if isinstance(place, TopicPartition):
            if place not in self._leaderships:
                yield from self._fetch_metadata(ask_at, place.topic)
            return self._replica(place, request)
        if place not in self._coordinators:
            wanted = FindCoordinatorRequest(key_type=place[0], coordinator_keys=[place[1]])
            answer = yield from ask_at(self._any_broker(), wanted)
            self.learn(wanted, answer)
        return cluster.by_id.get(self._coordinators.get(place, -1))

    def learn(self, request: Message, answer: Any) -> None:  # noqa: ANN401 - any response
        """Store a coordinator, and forget a broker that turned out to be wrong."""
        if self._cluster.is_lone:
            return
        if isinstance(request, FindCoordinatorRequest):
            for found in [] if answer is None else answer.coordinators:
                if found.error_code == 0:
                    self._coordinators[request.key_type, found.key] = found.node_id
        elif answer is None or any(code in STALE_ROUTE_ERRORS for code in codes_in(answer)):
            self.forget(routing_key(request))

    def coordinator(self, group: str) -> Host | None:
        """Return the coordinator of a group, as far as the client knows it."""
        if self._cluster.is_lone:
            return self._cluster.hosts[0]
        return self._cluster.by_id.get(self._coordinators.get((GROUP, group), -1))

    def forget(self, place: Place) -> None:
        """Look up a broker again next time."""
        if isinstance(place, TopicPartition):
            self._leaderships.pop(place, None)
            self._read_replicas.pop(place, None)
        elif place is not None:
            self._coordinators.pop(place, None)

    def forget_all(self) -> None:
        """Forget everything, as after a restart."""
        self._leaderships.clear()
        self._epochs.clear()
        self._read_replicas.clear()
        self._coordinators.clear()

    def _any_broker(self) -> Host:
        return self._rng.choice(self._cluster.hosts)

    def _fetch_metadata(self, ask_at: AskAt, topic: str) -> Asking:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        host = self._any_broker()
        answer = yield from ask_at(host, request)
        for found in [] if answer is None else answer.topics:
            self._cluster.on_metadata(host, found)
            for part in found.partitions:
                place = TopicPartition(found.name, part.partition_index)
                if part.leader_id >= 0 and part.leader_epoch >= self._epochs.get(place, -1):
                    self._epochs[place] = part.leader_epoch
                    replicas = tuple(part.replica_nodes)
                    self._leaderships[place] = Leadership(
                        part.leader_id, part.leader_epoch, replicas
                    )

    def _replica(self, place: TopicPartition, request: Message) -> Host | None:
        led = self._leaderships.get(place)
        if led is None:
            return None
        if not isinstance(request, FetchRequest):
            return self._cluster.by_id[led.node_id]
        request.topics[0].partitions[0].current_leader_epoch = led.epoch
        if not self.reads_from_followers:
            return self._cluster.by_id[led.node_id]
        if place not in self._read_replicas:
            self._read_replicas[place] = self._rng.choice(led.replicas)
        return self._cluster.by_id[self._read_replicas[place]]


def routing_key(request: Message) -> Place:
    """Return the partition or coordinator key that decides which broker gets a request."""
    find = ROUTING_KEYS.get(type(request).__name__)
    return None if find is None else find(request)


def _written_to(request: Any) -> Place:  # noqa: ANN401 - as the table says
    topic = request.topic_data[0]
    return TopicPartition(topic.name, topic.partition_data[0].index)


def _read_from(request: Any) -> Place:  # noqa: ANN401 - as the table says
    topic = request.topics[0]
    return TopicPartition(topic.topic, topic.partitions[0].partition)


def _group(request: Any) -> Place:  # noqa: ANN401 - as the table says
    return (GROUP, request.group_id)


def _transaction(request: Any) -> Place:  # noqa: ANN401 - as the table says
    name = request.transactional_id
    return None if name is None else (TRANSACTION, name)


ROUTING_KEYS: dict[str, Callable[[Any], Place]] = {
    "ProduceRequest": _written_to,
    "FetchRequest": _read_from,
    "JoinGroupRequest": _group,
    "SyncGroupRequest": _group,
    "HeartbeatRequest": _group,
    "LeaveGroupRequest": _group,
    "OffsetCommitRequest": _group,
    "TxnOffsetCommitRequest": _group,
    "ConsumerGroupHeartbeatRequest": _group,
    "OffsetFetchRequest": lambda request: (GROUP, request.groups[0].group_id),
    "DeleteGroupsRequest": lambda request: (GROUP, request.groups_names[0]),
    "InitProducerIdRequest": _transaction,
    "AddOffsetsToTxnRequest": _transaction,
    "EndTxnRequest": _transaction,
    "AddPartitionsToTxnRequest": lambda request: (
        TRANSACTION,
        request.v3_and_below_transactional_id,
    ),
}
"""Finds the routing key in a request. Any broker serves the requests that are not in this table."""


def codes_in(answer: Message) -> Iterator[int]:
    """Return every error code in a response, at any depth."""
    for name in answer.__slots__:
        value = getattr(answer, name)
        if isinstance(value, list):
            for each in value:
                if isinstance(each, Message):
                    yield from codes_in(each)
        elif name.endswith("error_code"):
            yield value
