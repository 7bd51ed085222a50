"""OffsetCommitKey and OffsetCommitValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class OffsetCommitKey(Message):
    """Offset commit key, version 0, never flexible."""

    __slots__ = (
        "group",
        "topic",
        "partition",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "group string 0",
        "topic string 0",
        "partition int32 0",
    )

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition


class OffsetCommitValue(Message):
    """Offset commit value, versions 0-4, flexible from 4."""

    __slots__ = (
        "offset",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "expire_timestamp",
        "topic_id",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "offset int64 0+",
        "leader_epoch int32 3+ default=-1 ignorable",
        "metadata string 0+",
        "commit_timestamp int64 0+",
        "expire_timestamp int64 1 default=-1 ignorable",
        "topic_id uuid 4+ tag=0 tagged=4+ ignorable",
    )

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: bytes = bytes(16),
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id
