"""DeleteRecordsRequest and DeleteRecordsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DeleteRecordsPartition(Message):
    """Part of DeleteRecordsRequest."""

    __slots__ = (
        "partition_index",
        "offset",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "partition_index int32 0+",
        "offset int64 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset


class DeleteRecordsTopic(Message):
    """Part of DeleteRecordsRequest."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "name string 0+",
        "partitions []DeleteRecordsPartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartition] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[DeleteRecordsPartition] = [] if partitions is FRESH else partitions


class DeleteRecordsRequest(Message):
    """Delete records request, versions 0-2, flexible from 2."""

    __slots__ = (
        "topics",
        "timeout_ms",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "topics []DeleteRecordsTopic 0+",
        "timeout_ms int32 0+",
    )

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsTopic] = FRESH,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteRecordsTopic] = [] if topics is FRESH else topics
        self.timeout_ms = timeout_ms


class DeleteRecordsPartitionResult(Message):
    """Part of DeleteRecordsResponse."""

    __slots__ = (
        "partition_index",
        "low_watermark",
        "error_code",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "partition_index int32 0+",
        "low_watermark int64 0+",
        "error_code int16 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


class DeleteRecordsTopicResult(Message):
    """Part of DeleteRecordsResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "name string 0+",
        "partitions []DeleteRecordsPartitionResult 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[DeleteRecordsPartitionResult] = [] if partitions is FRESH else partitions


class DeleteRecordsResponse(Message):
    """Delete records response, versions 0-2, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+",
        "topics []DeleteRecordsTopicResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[DeleteRecordsTopicResult] = [] if topics is FRESH else topics
