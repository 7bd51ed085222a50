"""OffsetForLeaderEpochRequest and OffsetForLeaderEpochResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class OffsetForLeaderPartition(Message):
    """Part of OffsetForLeaderEpochRequest."""

    __slots__ = (
        "partition",
        "current_leader_epoch",
        "leader_epoch",
    )
    VERSIONS = (2, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "partition int32 0+",
        "current_leader_epoch int32 2+ default=-1 ignorable",
        "leader_epoch int32 0+",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(Message):
    """Part of OffsetForLeaderEpochRequest."""

    __slots__ = (
        "topic",
        "partitions",
    )
    VERSIONS = (2, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "topic string 0+",
        "partitions []OffsetForLeaderPartition 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] = FRESH,
    ) -> None:
        self.topic = topic
        self.partitions: list[OffsetForLeaderPartition] = [] if partitions is FRESH else partitions


class OffsetForLeaderEpochRequest(Message):
    """Offset for leader epoch request, versions 2-4, flexible from 4."""

    __slots__ = (
        "replica_id",
        "topics",
    )
    VERSIONS = (2, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "replica_id int32 3+ default=-2 ignorable",
        "topics []OffsetForLeaderTopic 0+",
    )

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] = FRESH,
    ) -> None:
        self.replica_id = replica_id
        self.topics: list[OffsetForLeaderTopic] = [] if topics is FRESH else topics


class EpochEndOffset(Message):
    """Part of OffsetForLeaderEpochResponse."""

    __slots__ = (
        "error_code",
        "partition",
        "leader_epoch",
        "end_offset",
    )
    VERSIONS = (2, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "error_code int16 0+",
        "partition int32 0+",
        "leader_epoch int32 1+ default=-1 ignorable",
        "end_offset int64 0+ default=-1",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


class OffsetForLeaderTopicResult(Message):
    """Part of OffsetForLeaderEpochResponse."""

    __slots__ = (
        "topic",
        "partitions",
    )
    VERSIONS = (2, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "topic string 0+",
        "partitions []EpochEndOffset 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[EpochEndOffset] = FRESH,
    ) -> None:
        self.topic = topic
        self.partitions: list[EpochEndOffset] = [] if partitions is FRESH else partitions


class OffsetForLeaderEpochResponse(Message):
    """Offset for leader epoch response, versions 2-4, flexible from 4."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    VERSIONS = (2, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "throttle_time_ms int32 2+ ignorable",
        "topics []OffsetForLeaderTopicResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[OffsetForLeaderTopicResult] = [] if topics is FRESH else topics
