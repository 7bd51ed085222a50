"""AlterShareGroupOffsetsRequest and AlterShareGroupOffsetsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class AlterShareGroupOffsetsRequestPartition(Message):
    """Part of AlterShareGroupOffsetsRequest."""

    __slots__ = (
        "partition_index",
        "start_offset",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "start_offset int64 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset


class AlterShareGroupOffsetsRequestTopic(Message):
    """Part of AlterShareGroupOffsetsRequest."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "partitions []AlterShareGroupOffsetsRequestPartition 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[AlterShareGroupOffsetsRequestPartition] = [] if partitions is FRESH else partitions


class AlterShareGroupOffsetsRequest(Message):
    """Alter share group offsets request, version 0, flexible from 0."""

    __slots__ = (
        "group_id",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "topics []AlterShareGroupOffsetsRequestTopic 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.topics: list[AlterShareGroupOffsetsRequestTopic] = [] if topics is FRESH else topics


class AlterShareGroupOffsetsResponsePartition(Message):
    """Part of AlterShareGroupOffsetsResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class AlterShareGroupOffsetsResponseTopic(Message):
    """Part of AlterShareGroupOffsetsResponse."""

    __slots__ = (
        "topic_name",
        "topic_id",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "topic_id uuid 0+",
        "partitions []AlterShareGroupOffsetsResponsePartition 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[AlterShareGroupOffsetsResponsePartition] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions: list[AlterShareGroupOffsetsResponsePartition] = [] if partitions is FRESH else partitions


class AlterShareGroupOffsetsResponse(Message):
    """Alter share group offsets response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "responses []AlterShareGroupOffsetsResponseTopic 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses: list[AlterShareGroupOffsetsResponseTopic] = [] if responses is FRESH else responses
