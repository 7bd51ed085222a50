"""DescribeTopicPartitionsRequest and DescribeTopicPartitionsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class TopicRequest(Message):
    """Part of DescribeTopicPartitionsRequest."""

    __slots__ = (
        "name",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name = name


class DescribeTopicPartitionsRequestCursor(Message):
    """Part of DescribeTopicPartitionsRequest."""

    __slots__ = (
        "topic_name",
        "partition_index",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "partition_index int32 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequest(Message):
    """Describe topic partitions request, version 0, flexible from 0."""

    __slots__ = (
        "topics",
        "response_partition_limit",
        "cursor",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topics []TopicRequest 0+",
        "response_partition_limit int32 0+ default=2000",
        "cursor DescribeTopicPartitionsRequestCursor 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = FRESH,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequestCursor | None = None,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is FRESH else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor


class DescribeTopicPartitionsResponsePartition(Message):
    """Part of DescribeTopicPartitionsResponse."""

    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "error_code int16 0+",
        "partition_index int32 0+",
        "leader_id int32 0+",
        "leader_epoch int32 0+ default=-1 ignorable",
        "replica_nodes []int32 0+",
        "isr_nodes []int32 0+",
        "eligible_leader_replicas []int32 0+ nullable=0+ default=null",
        "last_known_elr []int32 0+ nullable=0+ default=null",
        "offline_replicas []int32 0+ ignorable",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = FRESH,
        isr_nodes: list[int] = FRESH,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is FRESH else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is FRESH else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas: list[int] = [] if offline_replicas is FRESH else offline_replicas


class DescribeTopicPartitionsResponseTopic(Message):
    """Part of DescribeTopicPartitionsResponse."""

    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "error_code int16 0+",
        "name string 0+ nullable=0+",
        "topic_id uuid 0+ ignorable",
        "is_internal bool 0+ ignorable",
        "partitions []DescribeTopicPartitionsResponsePartition 0+",
        "topic_authorized_operations int32 0+ default=-2147483648",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = bytes(16),
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = FRESH,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions: list[DescribeTopicPartitionsResponsePartition] = [] if partitions is FRESH else partitions
        self.topic_authorized_operations = topic_authorized_operations


class DescribeTopicPartitionsResponseCursor(Message):
    """Part of DescribeTopicPartitionsResponse."""

    __slots__ = (
        "topic_name",
        "partition_index",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "partition_index int32 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsResponse(Message):
    """Describe topic partitions response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
        "next_cursor",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+ ignorable",
        "topics []DescribeTopicPartitionsResponseTopic 0+",
        "next_cursor DescribeTopicPartitionsResponseCursor 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = FRESH,
        next_cursor: DescribeTopicPartitionsResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[DescribeTopicPartitionsResponseTopic] = [] if topics is FRESH else topics
        self.next_cursor = next_cursor
