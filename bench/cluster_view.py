"""Queries and changes the state of a cluster over plain sockets.

The same requests go to both systems. Kafka's own tools take seconds to start, and librdkafka has no
reassignment. A request that is sent many times a second must use little CPU time.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.testing.raw_client import RawClient

CREATE_TOPICS, METADATA, QUORUM, REASSIGN, REASSIGNING = 7, 9, 2, 0, 0
"""The versions used; both systems know them."""
PATIENCE_S = 5.0


class PartitionView(NamedTuple):
    """A partition as the Metadata response describes it."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def is_led(self) -> bool:
        """Whether clients can use it."""
        return self.leader >= 0

    @property
    def is_whole(self) -> bool:
        """Whether all its replicas are in sync and one of them leads."""
        return self.is_led and sorted(self.in_sync) == sorted(self.replicas)


class View(NamedTuple):
    """The view of one node at one time."""

    brokers: frozenset[int]
    partitions: Mapping[tuple[str, int], PartitionView]

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition of a topic."""
        return {
            index: partition.leader
            for (name, index), partition in sorted(self.partitions.items())
            if name == topic
        }


class UnansweredError(Exception):
    """A node did not answer, or answered with an error; the text says which."""


def view(port: int, topics: Iterable[str] | None = None) -> View:
    """Ask one node for brokers and partitions, of all topics or of some."""
    asked = None if topics is None else [MetadataRequestTopic(name=topic) for topic in topics]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    with connected(port) as client:
        metadata = client.ask(request, METADATA, MetadataResponse)
    return View(
        frozenset(broker.node_id for broker in metadata.brokers),
        {
            (topic.name or "", partition.partition_index): PartitionView(
                partition.leader_id, tuple(partition.replica_nodes), tuple(partition.isr_nodes)
            )
            for topic in metadata.topics
            for partition in topic.partitions
        },
    )


def controller(port: int) -> int:
    """The quorum's leader, or -1 if a node knows none."""
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    with connected(port) as client:
        quorum = client.ask(DescribeQuorumRequest(topics=[topic]), QUORUM, DescribeQuorumResponse)
    if quorum.error_code or not quorum.topics:
        return -1
    return quorum.topics[0].partitions[0].leader_id


def create_topic(port: int, name: str, replicas: int) -> None:
    """Create a topic through any broker."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=replicas)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(PATIENCE_S * 1000))
    with connected(port) as client:
        made = client.ask(request, CREATE_TOPICS, CreateTopicsResponse).topics[0]
    check("create a topic", made.error_code)


def reassign(port: int, topic: str, replicas: Mapping[int, Iterable[int]]) -> None:
    """Reassign partitions to other replicas."""
    partitions = [
        ReassignablePartition(partition_index=index, replicas=list(wanted))
        for index, wanted in replicas.items()
    ]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=partitions)]
    )
    with connected(port) as client:
        answer = client.ask(request, REASSIGN, AlterPartitionReassignmentsResponse)
    check("reassign", answer.error_code)
    for partition in answer.responses[0].partitions:
        check("reassign", partition.error_code)


def is_reassigning(port: int) -> bool:
    """Whether any reassignment is in progress."""
    with connected(port) as client:
        answer = client.ask(
            ListPartitionReassignmentsRequest(topics=None),
            REASSIGNING,
            ListPartitionReassignmentsResponse,
        )
    check("list reassignments", answer.error_code)
    return bool(answer.topics)


def check(what: str, code: int) -> None:
    """Raise if a node returned an error."""
    if code:
        raise UnansweredError(f"{what}: {ErrorCode(code).name}")


class connected(RawClient):  # noqa: N801 - read as a verb: with connected(port) as client
    """A socket to one node whose failures all raise the same exception."""

    def __init__(self, port: int, patience_s: float = PATIENCE_S) -> None:
        try:
            super().__init__(("127.0.0.1", port), patience_s)
        except OSError as error:
            raise UnansweredError(f"port {port}: {error}") from error

    def receive_frame(self) -> bytes:
        """The next response."""
        try:
            return super().receive_frame()
        except (OSError, EOFError) as error:
            raise UnansweredError(f"no response: {error}") from error
