"""ListPartitionReassignmentsRequest and ListPartitionReassignmentsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ListPartitionReassignmentsTopics(Message):
    """Part of ListPartitionReassignmentsRequest."""

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


class ListPartitionReassignmentsRequest(Message):
    """List partition reassignments request, version 0, flexible from 0."""

    __slots__ = (
        "timeout_ms",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "timeout_ms int32 0+ default=60000",
        "topics []ListPartitionReassignmentsTopics 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics


class OngoingPartitionReassignment(Message):
    """Part of ListPartitionReassignmentsResponse."""

    __slots__ = (
        "partition_index",
        "replicas",
        "adding_replicas",
        "removing_replicas",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "replicas []int32 0+",
        "adding_replicas []int32 0+",
        "removing_replicas []int32 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] = FRESH,
        adding_replicas: list[int] = FRESH,
        removing_replicas: list[int] = FRESH,
    ) -> None:
        self.partition_index = partition_index
        self.replicas: list[int] = [] if replicas is FRESH else replicas
        self.adding_replicas: list[int] = [] if adding_replicas is FRESH else adding_replicas
        self.removing_replicas: list[int] = [] if removing_replicas is FRESH else removing_replicas


class OngoingTopicReassignment(Message):
    """Part of ListPartitionReassignmentsResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "partitions []OngoingPartitionReassignment 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[OngoingPartitionReassignment] = [] if partitions is FRESH else partitions


class ListPartitionReassignmentsResponse(Message):
    """List partition reassignments response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "topics []OngoingTopicReassignment 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics: list[OngoingTopicReassignment] = [] if topics is FRESH else topics
