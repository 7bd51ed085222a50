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
from barnabas.sim.clients.coordinated import Coordinated
from barnabas.sim.host import START_MS, Host
from barnabas.sim.world import InvariantError

NOBODY = ProducerIdAndEpoch(-1, -1)
REPLICAS = 3
TIMEOUT_MS = 5_000
PREFERRED = 0
SET = 0
TOPIC = 2
SEGMENT_BYTES = ("2000", "20000", "1000000")

Code = Callable[[Any], int]
"""Where an answer keeps its error code."""


def new_topic(name: str, partitions: int, config: dict[str, str]) -> CreateTopicsRequest:
    """Create a topic with the usual number of replicas."""
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=REPLICAS, configs=configs
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


class Operating(Coordinated):
    """A client that repeats a request until it succeeds."""

    def insist(self, request: Message, code_in: Code, *fine: ErrorCode) -> Asking:
        """Ask until it is done, or was done by a request whose answer was lost."""
        while True:
            answer = yield from self.ask(request)
            code = None if answer is None else ErrorCode(code_in(answer))
            if code is ErrorCode.NONE or code in fine:
                return answer
            if code is not None and not self.passes(code):
                raise InvariantError(f"{self.name} asks for {request} and hears {code.name}")
            yield from self.pause_before_retry()


class Founder(Operating):
    """Makes the topics of a world, and is done."""

    topics: dict[str, int]
    config: dict[str, str]
    topic_ids: dict[bytes, str]

    def life(self) -> Talk:
        """Make one after the other, while brokers are still coming up."""
        for name, partitions in self.topics.items():
            answer = yield from self.insist(
                new_topic(name, partitions, self.config),
                lambda answer: int(answer.topics[0].error_code),
                ErrorCode.TOPIC_ALREADY_EXISTS,
            )
            self.topic_ids[answer.topics[0].topic_id] = name

    def passes(self, code: ErrorCode) -> bool:
        """Wait for as many brokers as it takes, too."""
        return code is ErrorCode.INVALID_REPLICATION_FACTOR or super().passes(code)


class Operator(Operating):
    """Changes something now and then."""

    partitions: Sequence[TopicPartition]
    """The topics whose replicas are reassigned."""
    trial: str | None = None
    """The topic that is about to be deleted."""
    level = FIRST_LEVEL
    """The feature level that the cluster is at, as far as the operator was told."""
    _made = 0

    def life(self) -> Talk:
        """Do one thing after the other."""
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
        """Move a partition to other brokers, or think better of one that is moving."""
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
        """Finalize the latest feature level, which needs every broker to be there."""
        update = FeatureUpdateKey(feature=FEATURE, max_version_level=LATEST_LEVEL)
        answer = yield from self.ask(UpdateFeaturesRequest(feature_updates=[update]))
        if answer is not None:
            self.world.note(self.name, f"upgrades: {answer.error_code} {answer.error_message}")
            if answer.error_code == ErrorCode.NONE:
                self.level = LATEST_LEVEL

    def _try_topic(self) -> Asking:
        """Make a topic and delete it, each as often as it takes."""
        self._made += 1
        name = f"{self.name}-{self.lives}-{self._made}"
        yield from self.insist(
            new_topic(name, 2, {}),
            lambda answer: int(answer.topics[0].error_code),
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.INVALID_REPLICATION_FACTOR,
        )
        self.trial = name
        yield Sleep(self.rng.randint(0, 1_000))
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS)
        yield from self.insist(
            request,
            lambda answer: int(answer.responses[0].error_code),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )


class Demand(Actor):
    """Has brokers make topics while others are down: these topics grow when all are back."""

    topics_max = 3
    _made = 0

    def life(self) -> Talk:
        """Ask for a topic while some broker knows too few others for all of its replicas."""
        while not self.closing and self._made < self.topics_max:
            yield Sleep(self.rng.randint(20, 200))
            host = self.rng.choice(self.cluster.hosts)
            node = host.node
            if node is not None and node.membership.is_active and len(node.nodes) < REPLICAS:
                host.act(host.life, partial(self._need, host, node))

    def _need(self, host: Host, node: Node) -> None:
        self._made += 1
        name = f"{self.name}-{self._made}"
        try:
            node.create_topic(name, 2, {}, START_MS + self.world.now_ms)
        except ApiError as error:
            self.world.note(self.name, f"gets no topic from {host.name}: {error.message}")


class Scribbler(Coordinated):
    """Writes to topics on trial until after they are deleted; whatever becomes of it."""

    operator: Operator

    def life(self) -> Talk:
        """Write again and again."""
        while not self.closing:
            yield Sleep(self.rng.randint(0, 60))
            topic = self.operator.trial
            if topic is not None:
                now_ms = START_MS + self.world.now_ms
                content = batch_of([self.name], NOBODY, -1, transactional=False, now_ms=now_ms)
                partition = TopicPartition(topic, self.rng.randint(0, 1))
                yield from self.ask(produce_to(partition, content), BY_NAME)
