"""Markers: the control records that end a transaction in each partition it wrote to.

A marker in `__consumer_offsets` commits the offsets of the transaction or discards them: the
partition's coordinator replays it in the order of the log.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from barnabas.metadata.image import GROUPS_TOPIC
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.coordination.admissions import Admissions
from barnabas.node.coordination.coordinators import Coordinators
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.markers import ABORT, COMMIT, EndMarker, build_marker
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersResponse,
)
from barnabas.transactions.transitions import RAISES_EPOCH_FROM


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int = 0
    """2 where the epoch was raised for this end (KIP-890)."""

    @property
    def ended(self) -> ProducerIdAndEpoch:
        """The producer that wrote in the transaction, with its epoch before the end raised it."""
        was_raised = self.transaction_version >= RAISES_EPOCH_FROM
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch - was_raised)

    def to_message(self, partitions: Iterable[TopicPartition]) -> WritableTxnMarker:
        """Return the request for another broker to write this marker."""
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
    """Return the error code of each partition in another broker's response."""
    return {
        TopicPartition(topic.name, part.partition_index): ErrorCode(part.error_code)
        for marker in response.markers
        for topic in marker.topics
        for part in topic.partitions
    }


class MarkerHost(Protocol):
    """What writing a marker needs from the broker."""

    @property
    def coordinators(self) -> Coordinators:
        """The coordinators on this broker."""

    @property
    def admissions(self) -> Admissions:
        """The batches that wait to be admitted to a transaction."""

    def find(self, key: str | bytes, partition: int) -> Partition:
        """Return a partition that this broker leads, or raise `ApiError`."""


def write_marker(
    host: MarkerHost, topic: str, partition: int, marker: Marker, now_ms: int
) -> Pending[None]:
    """Append a marker; answer once it is committed. Raises `ApiError` if it is refused.

    It is written even if the producer has no open transaction in the partition: its epoch fences
    batches that come late. If the topic is deleted before the marker is committed, the answer fails
    with UNKNOWN_TOPIC_OR_PARTITION; if another broker becomes the leader, with
    NOT_LEADER_OR_FOLLOWER.
    """
    found = host.find(topic, partition)
    # Opened before the marker is in the log, or it would be replayed twice. A coordinator that is
    # still loading reads the marker in its turn.
    shard = host.coordinators.groups.shard_on(partition) if topic == GROUPS_TOPIC else None
    end = EndMarker(COMMIT if marker.commit else ABORT, marker.coordinator_epoch)
    batch = build_marker(marker.producer_id, marker.producer_epoch, end, now_ms)
    required_offset = found.leader.append_marker(batch, marker.transaction_version)
    host.admissions.ended(found.name, marker.ended)
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
