"""DeleteShareGroupStateRequest and DeleteShareGroupStateResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class PartitionData(Message):
    """Part of DeleteShareGroupStateRequest."""

    __slots__ = (
        "partition",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition int32 0+",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
    ) -> None:
        self.partition = partition


class DeleteStateData(Message):
    """Part of DeleteShareGroupStateRequest."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "partitions []PartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[PartitionData] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[PartitionData] = [] if partitions is FRESH else partitions


class DeleteShareGroupStateRequest(Message):
    """Delete share group state request, version 0, flexible from 0."""

    __slots__ = (
        "group_id",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "topics []DeleteStateData 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteStateData] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.topics: list[DeleteStateData] = [] if topics is FRESH else topics


class PartitionResult(Message):
    """Part of DeleteShareGroupStateResponse."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message


class DeleteStateResult(Message):
    """Part of DeleteShareGroupStateResponse."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "partitions []PartitionResult 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[PartitionResult] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[PartitionResult] = [] if partitions is FRESH else partitions


class DeleteShareGroupStateResponse(Message):
    """Delete share group state response, version 0, flexible from 0."""

    __slots__ = (
        "results",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "results []DeleteStateResult 0+",
    )

    def __init__(
        self,
        *,
        results: list[DeleteStateResult] = FRESH,
    ) -> None:
        self.results: list[DeleteStateResult] = [] if results is FRESH else results
