"""ConsumerGroupPartitionMetadataKey and ConsumerGroupPartitionMetadataValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ConsumerGroupPartitionMetadataKey(Message):
    """Consumer group partition metadata key, version 0, never flexible."""

    __slots__ = (
        "group_id",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "group_id string 0",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


class PartitionMetadata(Message):
    """Part of ConsumerGroupPartitionMetadataValue."""

    __slots__ = (
        "partition",
        "racks",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition int32 0+",
        "racks []string 0+",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        racks: list[str] = FRESH,
    ) -> None:
        self.partition = partition
        self.racks: list[str] = [] if racks is FRESH else racks


class TopicMetadata(Message):
    """Part of ConsumerGroupPartitionMetadataValue."""

    __slots__ = (
        "topic_id",
        "topic_name",
        "num_partitions",
        "partition_metadata",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "topic_name string 0+",
        "num_partitions int32 0+",
        "partition_metadata []PartitionMetadata 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata: list[PartitionMetadata] = [] if partition_metadata is FRESH else partition_metadata


class ConsumerGroupPartitionMetadataValue(Message):
    """Consumer group partition metadata value, version 0, flexible from 0."""

    __slots__ = (
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topics []TopicMetadata 0+",
    )

    def __init__(
        self,
        *,
        topics: list[TopicMetadata] = FRESH,
    ) -> None:
        self.topics: list[TopicMetadata] = [] if topics is FRESH else topics
