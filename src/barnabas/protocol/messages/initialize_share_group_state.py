"""InitializeShareGroupStateRequest and InitializeShareGroupStateResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class PartitionData(Message):
    """Part of InitializeShareGroupStateRequest."""

    __slots__ = (
        "partition",
        "state_epoch",
        "start_offset",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition int32 0+",
        "state_epoch int32 0+",
        "start_offset int64 0+",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.start_offset = start_offset


class InitializeStateData(Message):
    """Part of InitializeShareGroupStateRequest."""

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


class InitializeShareGroupStateRequest(Message):
    """Initialize share group state request, version 0, flexible from 0."""

    __slots__ = (
        "group_id",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "topics []InitializeStateData 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[InitializeStateData] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.topics: list[InitializeStateData] = [] if topics is FRESH else topics


class PartitionResult(Message):
    """Part of InitializeShareGroupStateResponse."""

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


class InitializeStateResult(Message):
    """Part of InitializeShareGroupStateResponse."""

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


class InitializeShareGroupStateResponse(Message):
    """Initialize share group state response, version 0, flexible from 0."""

    __slots__ = (
        "results",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "results []InitializeStateResult 0+",
    )

    def __init__(
        self,
        *,
        results: list[InitializeStateResult] = FRESH,
    ) -> None:
        self.results: list[InitializeStateResult] = [] if results is FRESH else results
