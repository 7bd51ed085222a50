"""ShareGroupTargetAssignmentMetadataKey and ShareGroupTargetAssignmentMetadataValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class ShareGroupTargetAssignmentMetadataKey(Message):
    """Share group target assignment metadata key, version 0, never flexible."""

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


class ShareGroupTargetAssignmentMetadataValue(Message):
    """Share group target assignment metadata value, version 0, flexible from 0."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "assignment_epoch int32 0+",
        "assignment_timestamp int64 0+ tag=0 tagged=0+ ignorable",
    )

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
