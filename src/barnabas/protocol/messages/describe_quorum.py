"""DescribeQuorumRequest and DescribeQuorumResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DescribeQuorumRequestPartitionData(Message):
    """Part of DescribeQuorumRequest."""

    __slots__ = (
        "partition_index",
    )
    VERSIONS = (0, 2)
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


class DescribeQuorumRequestTopicData(Message):
    """Part of DescribeQuorumRequest."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "partitions []DescribeQuorumRequestPartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumRequestPartitionData] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[DescribeQuorumRequestPartitionData] = [] if partitions is FRESH else partitions


class DescribeQuorumRequest(Message):
    """Describe quorum request, versions 0-2, flexible from 0."""

    __slots__ = (
        "topics",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topics []DescribeQuorumRequestTopicData 0+",
    )

    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequestTopicData] = FRESH,
    ) -> None:
        self.topics: list[DescribeQuorumRequestTopicData] = [] if topics is FRESH else topics


class ReplicaState(Message):
    """Part of DescribeQuorumResponse."""

    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "replica_id int32 0+",
        "replica_directory_id uuid 2+",
        "log_end_offset int64 0+",
        "last_fetch_timestamp int64 1+ default=-1 ignorable",
        "last_caught_up_timestamp int64 1+ default=-1 ignorable",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: bytes = bytes(16),
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp


class DescribeQuorumResponsePartitionData(Message):
    """Part of DescribeQuorumResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "error_message string 2+ nullable=2+ ignorable",
        "leader_id int32 0+",
        "leader_epoch int32 0+",
        "high_watermark int64 0+",
        "current_voters []ReplicaState 0+",
        "observers []ReplicaState 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] = FRESH,
        observers: list[ReplicaState] = FRESH,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters: list[ReplicaState] = [] if current_voters is FRESH else current_voters
        self.observers: list[ReplicaState] = [] if observers is FRESH else observers


class DescribeQuorumResponseTopicData(Message):
    """Part of DescribeQuorumResponse."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "partitions []DescribeQuorumResponsePartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumResponsePartitionData] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[DescribeQuorumResponsePartitionData] = [] if partitions is FRESH else partitions


class Listener(Message):
    """Part of DescribeQuorumResponse."""

    __slots__ = (
        "name",
        "host",
        "port",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 2+",
        "host string 2+",
        "port uint16 2+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


class Node(Message):
    """Part of DescribeQuorumResponse."""

    __slots__ = (
        "node_id",
        "listeners",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "node_id int32 2+",
        "listeners []Listener 2+",
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        listeners: list[Listener] = FRESH,
    ) -> None:
        self.node_id = node_id
        self.listeners: list[Listener] = [] if listeners is FRESH else listeners


class DescribeQuorumResponse(Message):
    """Describe quorum response, versions 0-2, flexible from 0."""

    __slots__ = (
        "error_code",
        "error_message",
        "topics",
        "nodes",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "error_code int16 0+",
        "error_message string 2+ nullable=2+ ignorable",
        "topics []DescribeQuorumResponseTopicData 0+",
        "nodes []Node 2+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[DescribeQuorumResponseTopicData] = FRESH,
        nodes: list[Node] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics: list[DescribeQuorumResponseTopicData] = [] if topics is FRESH else topics
        self.nodes: list[Node] = [] if nodes is FRESH else nodes
