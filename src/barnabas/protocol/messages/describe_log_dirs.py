"""DescribeLogDirsRequest and DescribeLogDirsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DescribableLogDirTopic(Message):
    """Part of DescribeLogDirsRequest."""

    __slots__ = (
        "topic",
        "partitions",
    )
    VERSIONS = (1, 5)
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


class DescribeLogDirsRequest(Message):
    """Describe log dirs request, versions 1-5, flexible from 2."""

    __slots__ = (
        "topics",
    )
    VERSIONS = (1, 5)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "topics []DescribableLogDirTopic 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | None = FRESH,
    ) -> None:
        self.topics: list[DescribableLogDirTopic] | None = [] if topics is FRESH else topics


class DescribeLogDirsPartition(Message):
    """Part of DescribeLogDirsResponse."""

    __slots__ = (
        "partition_index",
        "partition_size",
        "offset_lag",
        "is_future_key",
    )
    VERSIONS = (1, 5)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "partition_index int32 0+",
        "partition_size int64 0+",
        "offset_lag int64 0+",
        "is_future_key bool 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(Message):
    """Part of DescribeLogDirsResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (1, 5)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "name string 0+",
        "partitions []DescribeLogDirsPartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[DescribeLogDirsPartition] = [] if partitions is FRESH else partitions


class DescribeLogDirsResult(Message):
    """Part of DescribeLogDirsResponse."""

    __slots__ = (
        "error_code",
        "log_dir",
        "topics",
        "total_bytes",
        "usable_bytes",
        "is_cordoned",
    )
    VERSIONS = (1, 5)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "error_code int16 0+",
        "log_dir string 0+",
        "topics []DescribeLogDirsTopic 0+",
        "total_bytes int64 4+ default=-1 ignorable",
        "usable_bytes int64 4+ default=-1 ignorable",
        "is_cordoned bool 5+ ignorable",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = FRESH,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics: list[DescribeLogDirsTopic] = [] if topics is FRESH else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned


class DescribeLogDirsResponse(Message):
    """Describe log dirs response, versions 1-5, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results",
    )
    VERSIONS = (1, 5)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 3+ ignorable",
        "results []DescribeLogDirsResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results: list[DescribeLogDirsResult] = [] if results is FRESH else results
