"""OffsetFetchRequest and OffsetFetchResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class OffsetFetchRequestTopic(Message):
    """Part of OffsetFetchRequest."""

    __slots__ = (
        "name",
        "partition_indexes",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "name string 0-7",
        "partition_indexes []int32 0-7",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = FRESH,
    ) -> None:
        self.name = name
        self.partition_indexes: list[int] = [] if partition_indexes is FRESH else partition_indexes


class OffsetFetchRequestTopics(Message):
    """Part of OffsetFetchRequest."""

    __slots__ = (
        "name",
        "topic_id",
        "partition_indexes",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "name string 8-9 ignorable",
        "topic_id uuid 10+ ignorable",
        "partition_indexes []int32 8+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partition_indexes: list[int] = FRESH,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes: list[int] = [] if partition_indexes is FRESH else partition_indexes


class OffsetFetchRequestGroup(Message):
    """Part of OffsetFetchRequest."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "topics",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "group_id string 8+",
        "member_id string 9+ nullable=9+ default=null ignorable",
        "member_epoch int32 9+ default=-1 ignorable",
        "topics []OffsetFetchRequestTopics 8+ nullable=8+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = FRESH,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics: list[OffsetFetchRequestTopics] | None = [] if topics is FRESH else topics


class OffsetFetchRequest(Message):
    """Offset fetch request, versions 1-10, flexible from 6."""

    __slots__ = (
        "group_id",
        "topics",
        "groups",
        "require_stable",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "group_id string 0-7",
        "topics []OffsetFetchRequestTopic 0-7 nullable=2-7",
        "groups []OffsetFetchRequestGroup 8+",
        "require_stable bool 7+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = FRESH,
        groups: list[OffsetFetchRequestGroup] = FRESH,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics: list[OffsetFetchRequestTopic] | None = [] if topics is FRESH else topics
        self.groups: list[OffsetFetchRequestGroup] = [] if groups is FRESH else groups
        self.require_stable = require_stable


class OffsetFetchResponsePartition(Message):
    """Part of OffsetFetchResponse."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "partition_index int32 0-7",
        "committed_offset int64 0-7",
        "committed_leader_epoch int32 5-7 default=-1 ignorable",
        "metadata string 0-7 nullable=0-7",
        "error_code int16 0-7",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(Message):
    """Part of OffsetFetchResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "name string 0-7",
        "partitions []OffsetFetchResponsePartition 0-7",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[OffsetFetchResponsePartition] = [] if partitions is FRESH else partitions


class OffsetFetchResponsePartitions(Message):
    """Part of OffsetFetchResponse."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "partition_index int32 8+",
        "committed_offset int64 8+",
        "committed_leader_epoch int32 8+ default=-1 ignorable",
        "metadata string 8+ nullable=8+",
        "error_code int16 8+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(Message):
    """Part of OffsetFetchResponse."""

    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "name string 8-9 ignorable",
        "topic_id uuid 10+ ignorable",
        "partitions []OffsetFetchResponsePartitions 8+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[OffsetFetchResponsePartitions] = FRESH,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[OffsetFetchResponsePartitions] = [] if partitions is FRESH else partitions


class OffsetFetchResponseGroup(Message):
    """Part of OffsetFetchResponse."""

    __slots__ = (
        "group_id",
        "topics",
        "error_code",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "group_id string 8+",
        "topics []OffsetFetchResponseTopics 8+",
        "error_code int16 8+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] = FRESH,
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics: list[OffsetFetchResponseTopics] = [] if topics is FRESH else topics
        self.error_code = error_code


class OffsetFetchResponse(Message):
    """Offset fetch response, versions 1-10, flexible from 6."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
        "error_code",
        "groups",
    )
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "throttle_time_ms int32 3+ ignorable",
        "topics []OffsetFetchResponseTopic 0-7",
        "error_code int16 2-7 ignorable",
        "groups []OffsetFetchResponseGroup 8+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] = FRESH,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[OffsetFetchResponseTopic] = [] if topics is FRESH else topics
        self.error_code = error_code
        self.groups: list[OffsetFetchResponseGroup] = [] if groups is FRESH else groups
