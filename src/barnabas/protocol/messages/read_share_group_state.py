"""ReadShareGroupStateRequest and ReadShareGroupStateResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class PartitionData(Message):
    """Part of ReadShareGroupStateRequest."""

    __slots__ = (
        "partition",
        "leader_epoch",
    )
    VERSIONS = (0, 0)
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


class ReadStateData(Message):
    """Part of ReadShareGroupStateRequest."""

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


class ReadShareGroupStateRequest(Message):
    """Read share group state request, version 0, flexible from 0."""

    __slots__ = (
        "group_id",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "topics []ReadStateData 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateData] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.topics: list[ReadStateData] = [] if topics is FRESH else topics


class StateBatch(Message):
    """Part of ReadShareGroupStateResponse."""

    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_state",
        "delivery_count",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "first_offset int64 0+",
        "last_offset int64 0+",
        "delivery_state int8 0+",
        "delivery_count int16 0+",
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count


class PartitionResult(Message):
    """Part of ReadShareGroupStateResponse."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "start_offset",
        "state_batches",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "state_epoch int32 0+",
        "start_offset int64 0+",
        "state_batches []StateBatch 0+",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[StateBatch] = FRESH,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.state_batches: list[StateBatch] = [] if state_batches is FRESH else state_batches


class ReadStateResult(Message):
    """Part of ReadShareGroupStateResponse."""

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


class ReadShareGroupStateResponse(Message):
    """Read share group state response, version 0, flexible from 0."""

    __slots__ = (
        "results",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "results []ReadStateResult 0+",
    )

    def __init__(
        self,
        *,
        results: list[ReadStateResult] = FRESH,
    ) -> None:
        self.results: list[ReadStateResult] = [] if results is FRESH else results
