"""ElectLeadersRequest and ElectLeadersResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class TopicPartitions(Message):
    """Part of ElectLeadersRequest."""

    __slots__ = (
        "topic",
        "partitions",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "topic string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic = topic
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class ElectLeadersRequest(Message):
    """Elect leaders request, versions 0-2, flexible from 2."""

    __slots__ = (
        "election_type",
        "topic_partitions",
        "timeout_ms",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "election_type int8 1+",
        "topic_partitions []TopicPartitions 0+ nullable=0+",
        "timeout_ms int32 0+ default=60000",
    )

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = FRESH,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions: list[TopicPartitions] | None = [] if topic_partitions is FRESH else topic_partitions
        self.timeout_ms = timeout_ms


class PartitionResult(Message):
    """Part of ElectLeadersResponse."""

    __slots__ = (
        "partition_id",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "partition_id int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


class ReplicaElectionResult(Message):
    """Part of ElectLeadersResponse."""

    __slots__ = (
        "topic",
        "partition_result",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "topic string 0+",
        "partition_result []PartitionResult 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: list[PartitionResult] = FRESH,
    ) -> None:
        self.topic = topic
        self.partition_result: list[PartitionResult] = [] if partition_result is FRESH else partition_result


class ElectLeadersResponse(Message):
    """Elect leaders response, versions 0-2, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "replica_election_results",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 1+",
        "replica_election_results []ReplicaElectionResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results: list[ReplicaElectionResult] = [] if replica_election_results is FRESH else replica_election_results
