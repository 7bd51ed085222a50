"""ConsumerProtocolSubscription."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class TopicPartition(Message):
    """Part of ConsumerProtocolSubscription."""

    __slots__ = (
        "topic",
        "partitions",
    )
    VERSIONS = (0, 3)
    FIELDS = (
        "topic string 1+",
        "partitions []int32 1+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic = topic
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class ConsumerProtocolSubscription(Message):
    """Consumer protocol subscription, versions 0-3, never flexible."""

    __slots__ = (
        "topics",
        "user_data",
        "owned_partitions",
        "generation_id",
        "rack_id",
    )
    VERSIONS = (0, 3)
    FIELDS = (
        "topics []string 0+",
        "user_data bytes 0+ nullable=0+ default=null",
        "owned_partitions []TopicPartition 1+ ignorable",
        "generation_id int32 2+ default=-1 ignorable",
        "rack_id string 3+ nullable=3+ default=null ignorable",
    )

    def __init__(
        self,
        *,
        topics: list[str] = FRESH,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] = FRESH,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics: list[str] = [] if topics is FRESH else topics
        self.user_data = user_data
        self.owned_partitions: list[TopicPartition] = [] if owned_partitions is FRESH else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
