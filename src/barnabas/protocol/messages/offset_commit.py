"""OffsetCommitRequest and OffsetCommitResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class OffsetCommitRequestPartition(Message):
    """Part of OffsetCommitRequest."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "committed_metadata",
    )
    VERSIONS = (2, 10)
    FLEXIBLE_FROM = 8
    FIELDS = (
        "partition_index int32 0+",
        "committed_offset int64 0+",
        "committed_leader_epoch int32 6+ default=-1 ignorable",
        "committed_metadata string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(Message):
    """Part of OffsetCommitRequest."""

    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )
    VERSIONS = (2, 10)
    FLEXIBLE_FROM = 8
    FIELDS = (
        "name string 0-9 ignorable",
        "topic_id uuid 10+ ignorable",
        "partitions []OffsetCommitRequestPartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[OffsetCommitRequestPartition] = FRESH,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[OffsetCommitRequestPartition] = [] if partitions is FRESH else partitions


class OffsetCommitRequest(Message):
    """Offset commit request, versions 2-10, flexible from 8."""

    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "retention_time_ms",
        "topics",
    )
    VERSIONS = (2, 10)
    FLEXIBLE_FROM = 8
    FIELDS = (
        "group_id string 0+",
        "generation_id_or_member_epoch int32 1+ default=-1 ignorable",
        "member_id string 1+ ignorable",
        "group_instance_id string 7+ nullable=7+ default=null",
        "retention_time_ms int64 2-4 default=-1 ignorable",
        "topics []OffsetCommitRequestTopic 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics: list[OffsetCommitRequestTopic] = [] if topics is FRESH else topics


class OffsetCommitResponsePartition(Message):
    """Part of OffsetCommitResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
    )
    VERSIONS = (2, 10)
    FLEXIBLE_FROM = 8
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetCommitResponseTopic(Message):
    """Part of OffsetCommitResponse."""

    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )
    VERSIONS = (2, 10)
    FLEXIBLE_FROM = 8
    FIELDS = (
        "name string 0-9 ignorable",
        "topic_id uuid 10+ ignorable",
        "partitions []OffsetCommitResponsePartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[OffsetCommitResponsePartition] = FRESH,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[OffsetCommitResponsePartition] = [] if partitions is FRESH else partitions


class OffsetCommitResponse(Message):
    """Offset commit response, versions 2-10, flexible from 8."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    VERSIONS = (2, 10)
    FLEXIBLE_FROM = 8
    FIELDS = (
        "throttle_time_ms int32 3+ ignorable",
        "topics []OffsetCommitResponseTopic 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[OffsetCommitResponseTopic] = [] if topics is FRESH else topics
