"""AlterPartitionReassignmentsRequest and AlterPartitionReassignmentsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ReassignablePartition(Message):
    """Part of AlterPartitionReassignmentsRequest."""

    __slots__ = (
        "partition_index",
        "replicas",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "replicas []int32 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas


class ReassignableTopic(Message):
    """Part of AlterPartitionReassignmentsRequest."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "partitions []ReassignablePartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartition] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[ReassignablePartition] = [] if partitions is FRESH else partitions


class AlterPartitionReassignmentsRequest(Message):
    """Alter partition reassignments request, versions 0-1, flexible from 0."""

    __slots__ = (
        "timeout_ms",
        "allow_replication_factor_change",
        "topics",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "timeout_ms int32 0+ default=60000",
        "allow_replication_factor_change bool 1+ default=true",
        "topics []ReassignableTopic 0+",
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = FRESH,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics: list[ReassignableTopic] = [] if topics is FRESH else topics


class ReassignablePartitionResponse(Message):
    """Part of AlterPartitionReassignmentsResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class ReassignableTopicResponse(Message):
    """Part of AlterPartitionReassignmentsResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "partitions []ReassignablePartitionResponse 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[ReassignablePartitionResponse] = [] if partitions is FRESH else partitions


class AlterPartitionReassignmentsResponse(Message):
    """Alter partition reassignments response, versions 0-1, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "allow_replication_factor_change bool 1+ default=true ignorable",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "responses []ReassignableTopicResponse 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses: list[ReassignableTopicResponse] = [] if responses is FRESH else responses
