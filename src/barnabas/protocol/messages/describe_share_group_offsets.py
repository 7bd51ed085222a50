"""DescribeShareGroupOffsetsRequest and DescribeShareGroupOffsetsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DescribeShareGroupOffsetsRequestTopic(Message):
    """Part of DescribeShareGroupOffsetsRequest."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class DescribeShareGroupOffsetsRequestGroup(Message):
    """Part of DescribeShareGroupOffsetsRequest."""

    __slots__ = (
        "group_id",
        "topics",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "topics []DescribeShareGroupOffsetsRequestTopic 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = FRESH,
    ) -> None:
        self.group_id = group_id
        self.topics: list[DescribeShareGroupOffsetsRequestTopic] | None = [] if topics is FRESH else topics


class DescribeShareGroupOffsetsRequest(Message):
    """Describe share group offsets request, versions 0-1, flexible from 0."""

    __slots__ = (
        "groups",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "groups []DescribeShareGroupOffsetsRequestGroup 0+",
    )

    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = FRESH,
    ) -> None:
        self.groups: list[DescribeShareGroupOffsetsRequestGroup] = [] if groups is FRESH else groups


class DescribeShareGroupOffsetsResponsePartition(Message):
    """Part of DescribeShareGroupOffsetsResponse."""

    __slots__ = (
        "partition_index",
        "start_offset",
        "leader_epoch",
        "lag",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "start_offset int64 0+",
        "leader_epoch int32 0+",
        "lag int64 1+ default=-1 ignorable",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponseTopic(Message):
    """Part of DescribeShareGroupOffsetsResponse."""

    __slots__ = (
        "topic_name",
        "topic_id",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "topic_id uuid 0+",
        "partitions []DescribeShareGroupOffsetsResponsePartition 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions: list[DescribeShareGroupOffsetsResponsePartition] = [] if partitions is FRESH else partitions


class DescribeShareGroupOffsetsResponseGroup(Message):
    """Part of DescribeShareGroupOffsetsResponse."""

    __slots__ = (
        "group_id",
        "topics",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "topics []DescribeShareGroupOffsetsResponseTopic 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] = FRESH,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics: list[DescribeShareGroupOffsetsResponseTopic] = [] if topics is FRESH else topics
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponse(Message):
    """Describe share group offsets response, versions 0-1, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "groups []DescribeShareGroupOffsetsResponseGroup 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups: list[DescribeShareGroupOffsetsResponseGroup] = [] if groups is FRESH else groups
