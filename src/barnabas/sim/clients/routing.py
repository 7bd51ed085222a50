"""Finds the broker for a request: a partition's leader, a key's coordinator, or any broker.

As real clients do, it uses what it learned until a broker answers that it is wrong or does not
answer; then it asks any broker again. Metadata with an older leader epoch than a known one is
ignored. With one broker there is nothing to learn.
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
"""What has a coordinator: a group or a transactional id."""
Place = TopicPartition | Key | None
AskAt = Callable[[Host, Message], Asking]

MOVED = {
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
"""Errors after which a client looks around again."""


class Led(NamedTuple):
    """Who leads a partition, and who else has it."""

    node_id: int
    epoch: int
    replicas: tuple[int, ...]


class Routes:
    """What one client has learned of who does what."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rng = next(iter(cluster.by_id.values())).world.rng
        self._led: dict[TopicPartition, Led] = {}
        self._epochs: dict[TopicPartition, int] = {}
        """The latest leader epoch of each partition that was heard of."""
        self._coordinators: dict[Key, int] = {}
        self._nearby: dict[TopicPartition, int] = {}
        self.reads_nearby = False
        """Whether records are read from any replica (KIP-392), not from leaders alone."""

    def find(self, ask_at: AskAt, request: Message) -> Asking:
        """Return the broker that a request is for, asking others where it is not known."""
        cluster = self._cluster
        if cluster.is_lone:
            return cluster.hosts[0]
        place = place_of(request)
        if place is None:
            return self._anybody()
        if isinstance(place, TopicPartition):
            if place not in self._led:
                yield from self._look_around(ask_at, place.topic)
            return self._replica(place, request)
        if place not in self._coordinators:
            wanted = FindCoordinatorRequest(key_type=place[0], coordinator_keys=[place[1]])
            answer = yield from ask_at(self._anybody(), wanted)
            self.learn(wanted, answer)
        return cluster.by_id.get(self._coordinators.get(place, -1))

    def learn(self, request: Message, answer: Any) -> None:  # noqa: ANN401 - any response
        """Take in who coordinates, and where what was known is wrong."""
        if self._cluster.is_lone:
            return
        if isinstance(request, FindCoordinatorRequest):
            for found in [] if answer is None else answer.coordinators:
                if found.error_code == 0:
                    self._coordinators[request.key_type, found.key] = found.node_id
        elif answer is None or any(code in MOVED for code in codes_in(answer)):
            self.forget(place_of(request))

    def coordinator(self, group: str) -> Host | None:
        """Return who coordinates a group, as far as is known."""
        if self._cluster.is_lone:
            return self._cluster.hosts[0]
        return self._cluster.by_id.get(self._coordinators.get((GROUP, group), -1))

    def forget(self, place: Place) -> None:
        """Look for somebody's place again next time."""
        if isinstance(place, TopicPartition):
            self._led.pop(place, None)
            self._nearby.pop(place, None)
        elif place is not None:
            self._coordinators.pop(place, None)

    def forget_all(self) -> None:
        """Know nothing, as a process that was just started."""
        self._led.clear()
        self._epochs.clear()
        self._nearby.clear()
        self._coordinators.clear()

    def _anybody(self) -> Host:
        return self._rng.choice(self._cluster.hosts)

    def _look_around(self, ask_at: AskAt, topic: str) -> Asking:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        host = self._anybody()
        answer = yield from ask_at(host, request)
        for found in [] if answer is None else answer.topics:
            self._cluster.on_metadata(host, found)
            for part in found.partitions:
                place = TopicPartition(found.name, part.partition_index)
                if part.leader_id >= 0 and part.leader_epoch >= self._epochs.get(place, -1):
                    self._epochs[place] = part.leader_epoch
                    replicas = tuple(part.replica_nodes)
                    self._led[place] = Led(part.leader_id, part.leader_epoch, replicas)

    def _replica(self, place: TopicPartition, request: Message) -> Host | None:
        led = self._led.get(place)
        if led is None:
            return None
        if not isinstance(request, FetchRequest):
            return self._cluster.by_id[led.node_id]
        request.topics[0].partitions[0].current_leader_epoch = led.epoch
        if not self.reads_nearby:
            return self._cluster.by_id[led.node_id]
        if place not in self._nearby:
            self._nearby[place] = self._rng.choice(led.replicas)
        return self._cluster.by_id[self._nearby[place]]


def place_of(request: Message) -> Place:
    """Return what a request is about, which decides whom it is for."""
    find = PLACES.get(type(request).__name__)
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


PLACES: dict[str, Callable[[Any], Place]] = {
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
"""What is not here may be asked of anybody."""


def codes_in(answer: Message) -> Iterator[int]:
    """Return every error code in an answer, wherever it is."""
    for name in answer.__slots__:
        value = getattr(answer, name)
        if isinstance(value, list):
            for each in value:
                if isinstance(each, Message):
                    yield from codes_in(each)
        elif name.endswith("error_code"):
            yield value
