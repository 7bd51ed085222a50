"""Read the state of a cluster with Metadata and DescribeQuorum, from any node that answers."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from barnabas.testing.raw_client import RawClient

METADATA_VERSION = 9
QUORUM_VERSION = 2
PATIENCE_S = 2.0
NO_LEADER = -1


class PartitionView(NamedTuple):
    """A partition as Metadata describes it."""

    leader: int
    epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it has a leader and all its replicas are in sync."""
        return self.leader in self.replicas and sorted(self.isr) == sorted(self.replicas)


class ClusterView(NamedTuple):
    """The state of the cluster, as one node sees it at one time."""

    brokers: tuple[int, ...]
    partitions: Mapping[tuple[str, int], PartitionView]
    quorum_leader: int
    quorum_epoch: int
    voters: Mapping[int, int]
    """The voters, with the known log end offset of each."""

    def problems(self, nodes: Iterable[int], topics: Iterable[str] = ()) -> list[str]:
        """Return the reasons why the cluster is not healthy."""
        found = [f"broker {node} is missing" for node in nodes if node not in self.brokers]
        if self.quorum_leader not in self.brokers:
            found.append(f"the quorum's leader is {self.quorum_leader}")
        named = {topic for topic, _ in self.partitions}
        found += [f"there is no topic {topic}" for topic in topics if topic not in named]
        broken = sorted(name for name, view in self.partitions.items() if not view.is_whole)
        found += [f"{topic}-{number}: {self.partitions[topic, number]}" for topic, number in broken]
        return found


class NoAnswerError(Exception):
    """No node of the cluster answered; the text says why."""


def view(address: tuple[str, int], topics: Iterable[str] | None = None) -> ClusterView:
    """Ask one node; raise `NoAnswerError` if it does not answer or knows no leader."""
    try:
        with RawClient(address, PATIENCE_S) as client:
            metadata = client.ask(_about(topics), METADATA_VERSION, MetadataResponse)
            quorum = client.ask(_quorum(), QUORUM_VERSION, DescribeQuorumResponse)
    except (OSError, EOFError) as error:
        raise NoAnswerError(f"{address}: {error!r}") from error
    if quorum.error_code != ErrorCode.NONE or not quorum.topics:
        raise NoAnswerError(f"{address}: DescribeQuorum answers {quorum.error_code}")
    state = quorum.topics[0].partitions[0]
    if state.error_code != ErrorCode.NONE:
        raise NoAnswerError(f"{address}: DescribeQuorum answers {state.error_code}")
    return ClusterView(
        tuple(sorted(broker.node_id for broker in metadata.brokers)),
        {
            (topic.name or "", partition.partition_index): _partition(partition)
            for topic in metadata.topics
            for partition in topic.partitions
        },
        state.leader_id,
        state.leader_epoch,
        {voter.replica_id: voter.log_end_offset for voter in state.current_voters},
    )


def any_view(
    addresses: Iterable[tuple[str, int]], topics: Iterable[str] | None = None
) -> ClusterView:
    """Ask one node after the other, until one answers."""
    reasons = []
    for address in addresses:
        try:
            return view(address, topics)
        except NoAnswerError as error:
            reasons.append(str(error))
    raise NoAnswerError("; ".join(reasons))


def _about(topics: Iterable[str] | None) -> MetadataRequest:
    if topics is None:
        return MetadataRequest(topics=None, allow_auto_topic_creation=False)
    asked = [MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=asked, allow_auto_topic_creation=False)


def _quorum() -> DescribeQuorumRequest:
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    return DescribeQuorumRequest(topics=[topic])


def _partition(told: MetadataResponsePartition) -> PartitionView:
    return PartitionView(
        told.leader_id, told.leader_epoch, tuple(told.replica_nodes), tuple(told.isr_nodes)
    )
