"""DescribeProducersRequest and DescribeProducersResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class TopicRequest(Message):
    """Part of DescribeProducersRequest."""

    __slots__ = (
        "name",
        "partition_indexes",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "partition_indexes []int32 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = FRESH,
    ) -> None:
        self.name = name
        self.partition_indexes: list[int] = [] if partition_indexes is FRESH else partition_indexes


class DescribeProducersRequest(Message):
    """Describe producers request, version 0, flexible from 0."""

    __slots__ = (
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topics []TopicRequest 0+",
    )

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = FRESH,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is FRESH else topics


class ProducerState(Message):
    """Part of DescribeProducersResponse."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "producer_id int64 0+",
        "producer_epoch int32 0+",
        "last_sequence int32 0+ default=-1",
        "last_timestamp int64 0+ default=-1",
        "coordinator_epoch int32 0+",
        "current_txn_start_offset int64 0+ default=-1",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


class PartitionResponse(Message):
    """Part of DescribeProducersResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "active_producers",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "active_producers []ProducerState 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] = FRESH,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers: list[ProducerState] = [] if active_producers is FRESH else active_producers


class TopicResponse(Message):
    """Part of DescribeProducersResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "partitions []PartitionResponse 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[PartitionResponse] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[PartitionResponse] = [] if partitions is FRESH else partitions


class DescribeProducersResponse(Message):
    """Describe producers response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "topics []TopicResponse 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[TopicResponse] = [] if topics is FRESH else topics
