"""ConsumerProtocolAssignment."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class TopicPartition(Message):
    """Part of ConsumerProtocolAssignment."""

    __slots__ = (
        "topic",
        "partitions",
    )
    VERSIONS = (0, 3)
    FIELDS = (
        "topic string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic = topic
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class ConsumerProtocolAssignment(Message):
    """Consumer protocol assignment, versions 0-3, never flexible."""

    __slots__ = (
        "assigned_partitions",
        "user_data",
    )
    VERSIONS = (0, 3)
    FIELDS = (
        "assigned_partitions []TopicPartition 0+",
        "user_data bytes 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        assigned_partitions: list[TopicPartition] = FRESH,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions: list[TopicPartition] = [] if assigned_partitions is FRESH else assigned_partitions
        self.user_data = user_data
