"""ShareGroupStatePartitionMetadataKey and ShareGroupStatePartitionMetadataValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ShareGroupStatePartitionMetadataKey(Message):
    """Share group state partition metadata key, version 0, never flexible."""

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


class TopicPartitionsInfo(Message):
    """Part of ShareGroupStatePartitionMetadataValue."""

    __slots__ = (
        "topic_id",
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "topic_name string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        topic_name: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class TopicInfo(Message):
    """Part of ShareGroupStatePartitionMetadataValue."""

    __slots__ = (
        "topic_id",
        "topic_name",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "topic_name string 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        topic_name: str = "",
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name


class ShareGroupStatePartitionMetadataValue(Message):
    """Share group state partition metadata value, version 0, flexible from 0."""

    __slots__ = (
        "initializing_topics",
        "initialized_topics",
        "deleting_topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "initializing_topics []TopicPartitionsInfo 0+",
        "initialized_topics []TopicPartitionsInfo 0+",
        "deleting_topics []TopicInfo 0+",
    )

    def __init__(
        self,
        *,
        initializing_topics: list[TopicPartitionsInfo] = FRESH,
        initialized_topics: list[TopicPartitionsInfo] = FRESH,
        deleting_topics: list[TopicInfo] = FRESH,
    ) -> None:
        self.initializing_topics: list[TopicPartitionsInfo] = [] if initializing_topics is FRESH else initializing_topics
        self.initialized_topics: list[TopicPartitionsInfo] = [] if initialized_topics is FRESH else initialized_topics
        self.deleting_topics: list[TopicInfo] = [] if deleting_topics is FRESH else deleting_topics
