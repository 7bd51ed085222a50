"""BeginQuorumEpochRequest and BeginQuorumEpochResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class BeginQuorumEpochRequestPartitionData(Message):
    """Part of BeginQuorumEpochRequest."""

    __slots__ = (
        "partition_index",
        "voter_directory_id",
        "leader_id",
        "leader_epoch",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "partition_index int32 0+",
        "voter_directory_id uuid 1+ ignorable",
        "leader_id int32 0+",
        "leader_epoch int32 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        voter_directory_id: bytes = bytes(16),
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.voter_directory_id = voter_directory_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class BeginQuorumEpochRequestTopicData(Message):
    """Part of BeginQuorumEpochRequest."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "topic_name string 0+",
        "partitions []BeginQuorumEpochRequestPartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochRequestPartitionData] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[BeginQuorumEpochRequestPartitionData] = [] if partitions is FRESH else partitions


class LeaderEndpoint(Message):
    """Part of BeginQuorumEpochRequest."""

    __slots__ = (
        "name",
        "host",
        "port",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "name string 1+",
        "host string 1+",
        "port uint16 1+",
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


class BeginQuorumEpochRequest(Message):
    """Begin quorum epoch request, versions 0-1, flexible from 1."""

    __slots__ = (
        "cluster_id",
        "voter_id",
        "topics",
        "leader_endpoints",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "cluster_id string 0+ nullable=0+ default=null",
        "voter_id int32 1+ default=-1 ignorable",
        "topics []BeginQuorumEpochRequestTopicData 0+",
        "leader_endpoints []LeaderEndpoint 1+ ignorable",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[BeginQuorumEpochRequestTopicData] = FRESH,
        leader_endpoints: list[LeaderEndpoint] = FRESH,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics: list[BeginQuorumEpochRequestTopicData] = [] if topics is FRESH else topics
        self.leader_endpoints: list[LeaderEndpoint] = [] if leader_endpoints is FRESH else leader_endpoints


class BeginQuorumEpochResponsePartitionData(Message):
    """Part of BeginQuorumEpochResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "leader_id int32 0+",
        "leader_epoch int32 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class BeginQuorumEpochResponseTopicData(Message):
    """Part of BeginQuorumEpochResponse."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "topic_name string 0+",
        "partitions []BeginQuorumEpochResponsePartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochResponsePartitionData] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[BeginQuorumEpochResponsePartitionData] = [] if partitions is FRESH else partitions


class NodeEndpoint(Message):
    """Part of BeginQuorumEpochResponse."""

    __slots__ = (
        "node_id",
        "host",
        "port",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "node_id int32 1+",
        "host string 1+",
        "port uint16 1+",
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port


class BeginQuorumEpochResponse(Message):
    """Begin quorum epoch response, versions 0-1, flexible from 1."""

    __slots__ = (
        "error_code",
        "topics",
        "node_endpoints",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "error_code int16 0+",
        "topics []BeginQuorumEpochResponseTopicData 0+",
        "node_endpoints []NodeEndpoint 1+ tag=0 tagged=1+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[BeginQuorumEpochResponseTopicData] = FRESH,
        node_endpoints: list[NodeEndpoint] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.topics: list[BeginQuorumEpochResponseTopicData] = [] if topics is FRESH else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is FRESH else node_endpoints
