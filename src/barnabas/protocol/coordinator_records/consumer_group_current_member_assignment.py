"""ConsumerGroupCurrentMemberAssignmentKey and ConsumerGroupCurrentMemberAssignmentValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """Consumer group current member assignment key, version 0, never flexible."""

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


class TopicPartitions(Message):
    """Part of ConsumerGroupCurrentMemberAssignmentValue."""

    __slots__ = (
        "topic_id",
        "partitions",
        "assignment_epochs",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "partitions []int32 0+",
        "assignment_epochs []int32 0+ nullable=0+ tag=0 tagged=0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[int] = FRESH,
        assignment_epochs: list[int] | None = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[int] = [] if partitions is FRESH else partitions
        self.assignment_epochs: list[int] | None = [] if assignment_epochs is FRESH else assignment_epochs


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """Consumer group current member assignment value, version 0, flexible from 0."""

    __slots__ = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "assigned_partitions",
        "partitions_pending_revocation",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "member_epoch int32 0+",
        "previous_member_epoch int32 0+",
        "state int8 0+",
        "assigned_partitions []TopicPartitions 0+",
        "partitions_pending_revocation []TopicPartitions 0+",
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = FRESH,
        partitions_pending_revocation: list[TopicPartitions] = FRESH,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions: list[TopicPartitions] = [] if assigned_partitions is FRESH else assigned_partitions
        self.partitions_pending_revocation: list[TopicPartitions] = [] if partitions_pending_revocation is FRESH else partitions_pending_revocation
