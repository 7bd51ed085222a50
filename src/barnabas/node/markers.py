"""Markers: the control records that end a transaction in each partition it wrote to.

A marker in `__consumer_offsets` makes the offsets that were committed in the transaction count,
or has them forgotten: the coordinator of that partition hears of it in the order of the log.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.metadata.image import GROUPS_TOPIC
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.partition import Partition
from barnabas.protocol.markers import ABORT, COMMIT, EndMarker, build_marker
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersResponse,
)
from barnabas.transactions.transitions import RAISES_EPOCH_FROM

if TYPE_CHECKING:
    from barnabas.node.node import Node


class Marker(NamedTuple):
    """How a producer's transaction ends."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int = 0
    """2 where the epoch was raised for this end (KIP-890)."""

    @property
    def ended(self) -> ProducerIdAndEpoch:
        """Who wrote in the transaction: with the epoch before, where it was raised for the end."""
        was_raised = self.transaction_version >= RAISES_EPOCH_FROM
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch - was_raised)

    def to_message(self, partitions: Iterable[TopicPartition]) -> WritableTxnMarker:
        """Return what another broker is asked to write."""
        topics: dict[str, WritableTxnMarkerTopic] = {}
        for name, number in partitions:
            topic = topics.setdefault(name, WritableTxnMarkerTopic(name=name))
            topic.partition_indexes.append(number)
        return WritableTxnMarker(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            transaction_result=self.commit,
            topics=list(topics.values()),
            coordinator_epoch=self.coordinator_epoch,
            transaction_version=self.transaction_version,
        )


def codes_in(response: WriteTxnMarkersResponse) -> dict[TopicPartition, ErrorCode]:
    """Return what another broker answered for each partition."""
    return {
        TopicPartition(topic.name, part.partition_index): ErrorCode(part.error_code)
        for marker in response.markers
        for topic in marker.topics
        for part in topic.partitions
    }


def write_marker(
    node: "Node", topic: str, partition: int, marker: Marker, now_ms: int
) -> Pending[None]:
    """Append a marker; answer once it is safe. Raises `ApiError` where it is refused.

    It is written whether or not the producer has a transaction open in the partition: then it
    still carries the epoch that fences what comes late. Where the topic is deleted before the
    marker is safe, the answer fails with UNKNOWN_TOPIC_OR_PARTITION; where somebody else leads the
    partition by then, with NOT_LEADER_OR_FOLLOWER.
    """
    found = node.find(topic, partition)
    # Taken up before the marker is in the log, or it would be replayed twice. One that is still
    # being read will come to the marker in its turn.
    shard = node.coordinators.groups.shard_on(partition) if topic == GROUPS_TOPIC else None
    end = EndMarker(COMMIT if marker.commit else ABORT, marker.coordinator_epoch)
    batch = build_marker(marker.producer_id, marker.producer_epoch, end, now_ms)
    required_offset = found.append_marker(batch, marker.transaction_version)
    node.transactions.admissions.ended(found.name, marker.ended)
    if shard is not None:
        producer = ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch)
        shard.machine.replay_marker(producer, committed=marker.commit)
        shard.machine.offsets.endings.ended(*marker.ended)
    written: Pending[None] = Pending()
    found.when_safe(
        required_offset,
        lambda: written.complete(None),
        lambda: written.fail(_lost(found)),
    )
    return written


def _lost(partition: Partition) -> ApiError:
    if partition.retired:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
