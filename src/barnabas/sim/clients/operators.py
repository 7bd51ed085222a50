"""Simulated operators: they create topics, reassign replicas and move leadership."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas.metadata.features import FEATURE, FIRST_LEVEL, LATEST_LEVEL
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.node.node import Node
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.sim.clients.actor import Actor, Asking, Sleep, Talk
from barnabas.sim.clients.client_requests import BY_NAME, batch_of, produce_to
from barnabas.sim.clients.coordinated import CoordinatedClient
from barnabas.sim.host import START_MS, Host
from barnabas.sim.world import InvariantError

NO_PRODUCER = ProducerIdAndEpoch(-1, -1)
REPLICAS = 3
TIMEOUT_MS = 5_000
PREFERRED = 0
SET = 0
TOPIC = 2
SEGMENT_BYTES = ("2000", "20000", "1000000")

Code = Callable[[Any], int]
"""The field of a response that has the error code."""


def new_topic(name: str, partitions: int, config: dict[str, str]) -> CreateTopicsRequest:
    """Create a topic with the default number of replicas."""
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=REPLICAS, configs=configs
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


class RetryingClient(CoordinatedClient):
    """A client that repeats a request until it succeeds."""

    def repeat_until_final(self, request: Message, code_in: Code, *fine: ErrorCode) -> Asking:
        """Repeat a request until it, or one whose response was lost, has succeeded."""
        while True:
            answer = yield from self.ask(request)
            code = None if answer is None else ErrorCode(code_in(answer))
            if code is ErrorCode.NONE or code in fine:
                return answer
            if code is not None and not self.is_retriable(code):
                raise InvariantError(f"{self.name} sent {request} and got {code.name}")
            yield from self.pause_before_retry()


class TopicCreator(RetryingClient):
    """Creates the topics of a world, and ends."""

    topics: dict[str, int]
    config: dict[str, str]
    topic_ids: dict[bytes, str]

    def life(self) -> Talk:
        """Create one topic after the other, while brokers are still starting."""
        for name, partitions in self.topics.items():
            answer = yield from self.repeat_until_final(
                new_topic(name, partitions, self.config),
                lambda answer: int(answer.topics[0].error_code),
                ErrorCode.TOPIC_ALREADY_EXISTS,
            )
            self.topic_ids[answer.topics[0].topic_id] = name

    def is_retriable(self, code: ErrorCode) -> bool:
        """Treat an error as retriable; also a lack of brokers."""
        return code is ErrorCode.INVALID_REPLICATION_FACTOR or super().is_retriable(code)


class Operator(RetryingClient):
    """Changes the cluster from time to time."""

    partitions: Sequence[TopicPartition]
    """The topics whose replicas are reassigned."""
    trial_topic: str | None = None
    """The topic that will be deleted next."""
    level = FIRST_LEVEL
    """The feature level of the cluster in the last response to the operator."""
    _made = 0

    def life(self) -> Talk:
        """Run random operations."""
        while not self.closing:
            yield Sleep(self.rng.randint(300, 3_000))
            if not self.closing:
                yield from self.rng.choice(
                    (
                        self._reassign,
                        self._reassign,
                        self._elect,
                        self._configure,
                        self._try_topic,
                        self._upgrade,
                    )
                )()

    def _reassign(self) -> Asking:
        """Move a partition to other brokers, or cancel a move that is in progress."""
        partition = self.rng.choice(self.partitions)
        brokers = sorted(self.cluster.by_id)
        replicas = self.rng.sample(brokers, min(REPLICAS, len(brokers)))
        cancels = self.rng.random() < 0.2
        part = ReassignablePartition(
            partition_index=partition.partition, replicas=None if cancels else replicas
        )
        topic = ReassignableTopic(name=partition.topic, partitions=[part])
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=[topic])
        answer = yield from self.ask(request)
        if answer is not None:
            self.world.note(self.name, f"moves {partition} to {part.replicas}")

    def _elect(self) -> Asking:
        partition = self.rng.choice(self.partitions)
        wanted = TopicPartitions(topic=partition.topic, partitions=[partition.partition])
        request = ElectLeadersRequest(
            election_type=PREFERRED, topic_partitions=[wanted], timeout_ms=TIMEOUT_MS
        )
        yield from self.ask(request)

    def _configure(self) -> Asking:
        config = AlterableConfig(
            name="segment.bytes", config_operation=SET, value=self.rng.choice(SEGMENT_BYTES)
        )
        topic = self.rng.choice(self.partitions).topic
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=[config])
        yield from self.ask(IncrementalAlterConfigsRequest(resources=[resource]))

    def _upgrade(self) -> Asking:
        """Finalize the latest feature level, which needs every broker."""
        update = FeatureUpdateKey(feature=FEATURE, max_version_level=LATEST_LEVEL)
        answer = yield from self.ask(UpdateFeaturesRequest(feature_updates=[update]))
        if answer is not None:
            self.world.note(self.name, f"upgrade: {answer.error_code} {answer.error_message}")
            if answer.error_code == ErrorCode.NONE:
                self.level = LATEST_LEVEL

    def _try_topic(self) -> Asking:
        """Create a topic and delete it, and retry each until it succeeds."""
        self._made += 1
        name = f"{self.name}-{self.lives}-{self._made}"
        yield from self.repeat_until_final(
            new_topic(name, 2, {}),
            lambda answer: int(answer.topics[0].error_code),
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.INVALID_REPLICATION_FACTOR,
        )
        self.trial_topic = name
        yield Sleep(self.rng.randint(0, 1_000))
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS)
        yield from self.repeat_until_final(
            request,
            lambda answer: int(answer.responses[0].error_code),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )


class AutoTopicCreator(Actor):
    """Has brokers create topics while others are down; the controller adds the replicas later."""

    topics_max = 3
    _made = 0

    def life(self) -> Talk:
        """Request a topic from a broker that knows too few others for all replicas."""
        while not self.closing and self._made < self.topics_max:
            yield Sleep(self.rng.randint(20, 200))
            host = self.rng.choice(self.cluster.hosts)
            node = host.node
            if node is not None and node.membership.is_active and len(node.nodes) < REPLICAS:
                host.run_event(host.life, partial(self._create_topic, host, node))

    def _create_topic(self, host: Host, node: Node) -> None:
        self._made += 1
        name = f"{self.name}-{self._made}"
        try:
            node.create_topic(name, 2, {}, START_MS + self.world.now_ms)
        except ApiError as error:
            self.world.note(self.name, f"got no topic from {host.name}: {error.message}")


class UncheckedWriter(CoordinatedClient):
    """Writes to topics that are created and deleted, without checking the outcome."""

    operator: Operator

    def life(self) -> Talk:
        """Write to the topic repeatedly."""
        while not self.closing:
            yield Sleep(self.rng.randint(0, 60))
            topic = self.operator.trial_topic
            if topic is not None:
                now_ms = START_MS + self.world.now_ms
                content = batch_of([self.name], NO_PRODUCER, -1, transactional=False, now_ms=now_ms)
                partition = TopicPartition(topic, self.rng.randint(0, 1))
                yield from self.ask(produce_to(partition, content), BY_NAME)
