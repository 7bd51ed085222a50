"""ReadShareGroupStateSummaryRequest and ReadShareGroupStateSummaryResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class PartitionData(Message):
    """Part of ReadShareGroupStateSummaryRequest."""

    __slots__ = (
        "partition",
        "leader_epoch",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition int32 0+",
        "leader_epoch int32 0+",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch


class ReadStateSummaryData(Message):
    """Part of ReadShareGroupStateSummaryRequest."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (0, 1)
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


class ReadShareGroupStateSummaryRequest(Message):
    """Read share group state summary request, versions 0-1, flexible from 0."""

    __slots__ = (
        "group_id",
        "topics",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "topics []ReadStateSummaryData 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateSummaryData] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.topics: list[ReadStateSummaryData] = [] if topics is FRESH else topics


class PartitionResult(Message):
    """Part of ReadShareGroupStateSummaryResponse."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "state_epoch int32 0+",
        "leader_epoch int32 0+",
        "start_offset int64 0+",
        "delivery_complete_count int32 1+ default=-1 ignorable",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count


class ReadStateSummaryResult(Message):
    """Part of ReadShareGroupStateSummaryResponse."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (0, 1)
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


class ReadShareGroupStateSummaryResponse(Message):
    """Read share group state summary response, versions 0-1, flexible from 0."""

    __slots__ = (
        "results",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "results []ReadStateSummaryResult 0+",
    )

    def __init__(
        self,
        *,
        results: list[ReadStateSummaryResult] = FRESH,
    ) -> None:
        self.results: list[ReadStateSummaryResult] = [] if results is FRESH else results
