"""AlterReplicaLogDirsRequest and AlterReplicaLogDirsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class AlterReplicaLogDirTopic(Message):
    """Part of AlterReplicaLogDirsRequest."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "name string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class AlterReplicaLogDir(Message):
    """Part of AlterReplicaLogDirsRequest."""

    __slots__ = (
        "path",
        "topics",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "path string 0+",
        "topics []AlterReplicaLogDirTopic 0+",
    )

    def __init__(
        self,
        *,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] = FRESH,
    ) -> None:
        self.path = path
        self.topics: list[AlterReplicaLogDirTopic] = [] if topics is FRESH else topics


class AlterReplicaLogDirsRequest(Message):
    """Alter replica log dirs request, versions 1-2, flexible from 2."""

    __slots__ = (
        "dirs",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "dirs []AlterReplicaLogDir 0+",
    )

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] = FRESH,
    ) -> None:
        self.dirs: list[AlterReplicaLogDir] = [] if dirs is FRESH else dirs


class AlterReplicaLogDirPartitionResult(Message):
    """Part of AlterReplicaLogDirsResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
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


class AlterReplicaLogDirTopicResult(Message):
    """Part of AlterReplicaLogDirsResponse."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "topic_name string 0+",
        "partitions []AlterReplicaLogDirPartitionResult 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[AlterReplicaLogDirPartitionResult] = [] if partitions is FRESH else partitions


class AlterReplicaLogDirsResponse(Message):
    """Alter replica log dirs response, versions 1-2, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+",
        "results []AlterReplicaLogDirTopicResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[AlterReplicaLogDirTopicResult] = [] if results is FRESH else results
