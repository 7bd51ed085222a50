"""WriteShareGroupStateRequest and WriteShareGroupStateResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class StateBatch(Message):
    """Part of WriteShareGroupStateRequest."""

    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_state",
        "delivery_count",
    )
    VERSIONS = (0, 1)
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


class PartitionData(Message):
    """Part of WriteShareGroupStateRequest."""

    __slots__ = (
        "partition",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "state_batches",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition int32 0+",
        "state_epoch int32 0+",
        "leader_epoch int32 0+",
        "start_offset int64 0+",
        "delivery_complete_count int32 1+ default=-1 ignorable",
        "state_batches []StateBatch 0+",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[StateBatch] = FRESH,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches: list[StateBatch] = [] if state_batches is FRESH else state_batches


class WriteStateData(Message):
    """Part of WriteShareGroupStateRequest."""

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


class WriteShareGroupStateRequest(Message):
    """Write share group state request, versions 0-1, flexible from 0."""

    __slots__ = (
        "group_id",
        "topics",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "topics []WriteStateData 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[WriteStateData] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.topics: list[WriteStateData] = [] if topics is FRESH else topics


class PartitionResult(Message):
    """Part of WriteShareGroupStateResponse."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 1)
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


class WriteStateResult(Message):
    """Part of WriteShareGroupStateResponse."""

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


class WriteShareGroupStateResponse(Message):
    """Write share group state response, versions 0-1, flexible from 0."""

    __slots__ = (
        "results",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "results []WriteStateResult 0+",
    )

    def __init__(
        self,
        *,
        results: list[WriteStateResult] = FRESH,
    ) -> None:
        self.results: list[WriteStateResult] = [] if results is FRESH else results
