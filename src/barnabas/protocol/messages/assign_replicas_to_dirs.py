"""AssignReplicasToDirsRequest and AssignReplicasToDirsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class AssignReplicasToDirsRequestPartitionData(Message):
    """Part of AssignReplicasToDirsRequest."""

    __slots__ = (
        "partition_index",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class AssignReplicasToDirsRequestTopicData(Message):
    """Part of AssignReplicasToDirsRequest."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "partitions []AssignReplicasToDirsRequestPartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[AssignReplicasToDirsRequestPartitionData] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[AssignReplicasToDirsRequestPartitionData] = [] if partitions is FRESH else partitions


class AssignReplicasToDirsRequestDirectoryData(Message):
    """Part of AssignReplicasToDirsRequest."""

    __slots__ = (
        "id",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "id uuid 0+",
        "topics []AssignReplicasToDirsRequestTopicData 0+",
    )

    def __init__(
        self,
        *,
        id: bytes = bytes(16),
        topics: list[AssignReplicasToDirsRequestTopicData] = FRESH,
    ) -> None:
        self.id = id
        self.topics: list[AssignReplicasToDirsRequestTopicData] = [] if topics is FRESH else topics


class AssignReplicasToDirsRequest(Message):
    """Assign replicas to dirs request, version 0, flexible from 0."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
        "directories",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "broker_id int32 0+",
        "broker_epoch int64 0+ default=-1",
        "directories []AssignReplicasToDirsRequestDirectoryData 0+",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequestDirectoryData] = FRESH,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.directories: list[AssignReplicasToDirsRequestDirectoryData] = [] if directories is FRESH else directories


class AssignReplicasToDirsResponsePartitionData(Message):
    """Part of AssignReplicasToDirsResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
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


class AssignReplicasToDirsResponseTopicData(Message):
    """Part of AssignReplicasToDirsResponse."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "partitions []AssignReplicasToDirsResponsePartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[AssignReplicasToDirsResponsePartitionData] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[AssignReplicasToDirsResponsePartitionData] = [] if partitions is FRESH else partitions


class AssignReplicasToDirsResponseDirectoryData(Message):
    """Part of AssignReplicasToDirsResponse."""

    __slots__ = (
        "id",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "id uuid 0+",
        "topics []AssignReplicasToDirsResponseTopicData 0+",
    )

    def __init__(
        self,
        *,
        id: bytes = bytes(16),
        topics: list[AssignReplicasToDirsResponseTopicData] = FRESH,
    ) -> None:
        self.id = id
        self.topics: list[AssignReplicasToDirsResponseTopicData] = [] if topics is FRESH else topics


class AssignReplicasToDirsResponse(Message):
    """Assign replicas to dirs response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "directories",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "directories []AssignReplicasToDirsResponseDirectoryData 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponseDirectoryData] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.directories: list[AssignReplicasToDirsResponseDirectoryData] = [] if directories is FRESH else directories
