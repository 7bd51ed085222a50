"""OffsetDeleteRequest and OffsetDeleteResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class OffsetDeleteRequestPartition(Message):
    """Part of OffsetDeleteRequest."""

    __slots__ = (
        "partition_index",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "partition_index int32 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class OffsetDeleteRequestTopic(Message):
    """Part of OffsetDeleteRequest."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "name string 0+",
        "partitions []OffsetDeleteRequestPartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[OffsetDeleteRequestPartition] = [] if partitions is FRESH else partitions


class OffsetDeleteRequest(Message):
    """Offset delete request, version 0, never flexible."""

    __slots__ = (
        "group_id",
        "topics",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "group_id string 0+",
        "topics []OffsetDeleteRequestTopic 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.topics: list[OffsetDeleteRequestTopic] = [] if topics is FRESH else topics


class OffsetDeleteResponsePartition(Message):
    """Part of OffsetDeleteResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
    )
    VERSIONS = (0, 0)
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


class OffsetDeleteResponseTopic(Message):
    """Part of OffsetDeleteResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "name string 0+",
        "partitions []OffsetDeleteResponsePartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[OffsetDeleteResponsePartition] = [] if partitions is FRESH else partitions


class OffsetDeleteResponse(Message):
    """Offset delete response, version 0, never flexible."""

    __slots__ = (
        "error_code",
        "throttle_time_ms",
        "topics",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "error_code int16 0+",
        "throttle_time_ms int32 0+ ignorable",
        "topics []OffsetDeleteResponseTopic 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[OffsetDeleteResponseTopic] = [] if topics is FRESH else topics
