"""WriteTxnMarkersRequest and WriteTxnMarkersResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class WritableTxnMarkerTopic(Message):
    """Part of WriteTxnMarkersRequest."""

    __slots__ = (
        "name",
        "partition_indexes",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
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


class WritableTxnMarker(Message):
    """Part of WriteTxnMarkersRequest."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "producer_id int64 0+",
        "producer_epoch int16 0+",
        "transaction_result bool 0+",
        "topics []WritableTxnMarkerTopic 0+",
        "coordinator_epoch int32 0+",
        "transaction_version int8 2+ ignorable",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = FRESH,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics: list[WritableTxnMarkerTopic] = [] if topics is FRESH else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


class WriteTxnMarkersRequest(Message):
    """Write txn markers request, versions 1-2, flexible from 1."""

    __slots__ = (
        "markers",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "markers []WritableTxnMarker 0+",
    )

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] = FRESH,
    ) -> None:
        self.markers: list[WritableTxnMarker] = [] if markers is FRESH else markers


class WritableTxnMarkerPartitionResult(Message):
    """Part of WriteTxnMarkersResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
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


class WritableTxnMarkerTopicResult(Message):
    """Part of WriteTxnMarkersResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "name string 0+",
        "partitions []WritableTxnMarkerPartitionResult 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[WritableTxnMarkerPartitionResult] = [] if partitions is FRESH else partitions


class WritableTxnMarkerResult(Message):
    """Part of WriteTxnMarkersResponse."""

    __slots__ = (
        "producer_id",
        "topics",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "producer_id int64 0+",
        "topics []WritableTxnMarkerTopicResult 0+",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = FRESH,
    ) -> None:
        self.producer_id = producer_id
        self.topics: list[WritableTxnMarkerTopicResult] = [] if topics is FRESH else topics


class WriteTxnMarkersResponse(Message):
    """Write txn markers response, versions 1-2, flexible from 1."""

    __slots__ = (
        "markers",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "markers []WritableTxnMarkerResult 0+",
    )

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] = FRESH,
    ) -> None:
        self.markers: list[WritableTxnMarkerResult] = [] if markers is FRESH else markers
