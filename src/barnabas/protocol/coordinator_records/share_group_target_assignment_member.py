"""ShareGroupTargetAssignmentMemberKey and ShareGroupTargetAssignmentMemberValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ShareGroupTargetAssignmentMemberKey(Message):
    """Share group target assignment member key, version 0, never flexible."""

    __slots__ = (
        "group_id",
        "member_id",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "group_id string 0",
        "member_id string 0",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


class TopicPartition(Message):
    """Part of ShareGroupTargetAssignmentMemberValue."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class ShareGroupTargetAssignmentMemberValue(Message):
    """Share group target assignment member value, version 0, flexible from 0."""

    __slots__ = (
        "topic_partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_partitions []TopicPartition 0+",
    )

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartition] = FRESH,
    ) -> None:
        self.topic_partitions: list[TopicPartition] = [] if topic_partitions is FRESH else topic_partitions
