"""ListOffsetsRequest and ListOffsetsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ListOffsetsPartition(Message):
    """Part of ListOffsetsRequest."""

    __slots__ = (
        "partition_index",
        "current_leader_epoch",
        "timestamp",
    )
    VERSIONS = (1, 11)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "partition_index int32 0+",
        "current_leader_epoch int32 4+ default=-1 ignorable",
        "timestamp int64 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


class ListOffsetsTopic(Message):
    """Part of ListOffsetsRequest."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (1, 11)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "name string 0+",
        "partitions []ListOffsetsPartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartition] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[ListOffsetsPartition] = [] if partitions is FRESH else partitions


class ListOffsetsRequest(Message):
    """List offsets request, versions 1-11, flexible from 6."""

    __slots__ = (
        "replica_id",
        "isolation_level",
        "topics",
        "timeout_ms",
    )
    VERSIONS = (1, 11)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "replica_id int32 0+",
        "isolation_level int8 2+",
        "topics []ListOffsetsTopic 0+",
        "timeout_ms int32 10+ ignorable",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] = FRESH,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics: list[ListOffsetsTopic] = [] if topics is FRESH else topics
        self.timeout_ms = timeout_ms


class ListOffsetsPartitionResponse(Message):
    """Part of ListOffsetsResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "timestamp",
        "offset",
        "leader_epoch",
    )
    VERSIONS = (1, 11)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "timestamp int64 1+ default=-1",
        "offset int64 1+ default=-1",
        "leader_epoch int32 4+ default=-1",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


class ListOffsetsTopicResponse(Message):
    """Part of ListOffsetsResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (1, 11)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "name string 0+",
        "partitions []ListOffsetsPartitionResponse 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[ListOffsetsPartitionResponse] = [] if partitions is FRESH else partitions


class ListOffsetsResponse(Message):
    """List offsets response, versions 1-11, flexible from 6."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    VERSIONS = (1, 11)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "throttle_time_ms int32 2+ ignorable",
        "topics []ListOffsetsTopicResponse 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[ListOffsetsTopicResponse] = [] if topics is FRESH else topics
