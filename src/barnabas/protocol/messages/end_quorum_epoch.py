"""EndQuorumEpochRequest and EndQuorumEpochResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ReplicaInfo(Message):
    """Part of EndQuorumEpochRequest."""

    __slots__ = (
        "candidate_id",
        "candidate_directory_id",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "candidate_id int32 1+",
        "candidate_directory_id uuid 1+",
    )

    def __init__(
        self,
        *,
        candidate_id: int = 0,
        candidate_directory_id: bytes = bytes(16),
    ) -> None:
        self.candidate_id = candidate_id
        self.candidate_directory_id = candidate_directory_id


class EndQuorumEpochRequestPartitionData(Message):
    """Part of EndQuorumEpochRequest."""

    __slots__ = (
        "partition_index",
        "leader_id",
        "leader_epoch",
        "preferred_successors",
        "preferred_candidates",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "partition_index int32 0+",
        "leader_id int32 0+",
        "leader_epoch int32 0+",
        "preferred_successors []int32 0 ignorable",
        "preferred_candidates []ReplicaInfo 1+ ignorable",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        preferred_successors: list[int] = FRESH,
        preferred_candidates: list[ReplicaInfo] = FRESH,
    ) -> None:
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.preferred_successors: list[int] = [] if preferred_successors is FRESH else preferred_successors
        self.preferred_candidates: list[ReplicaInfo] = [] if preferred_candidates is FRESH else preferred_candidates


class EndQuorumEpochRequestTopicData(Message):
    """Part of EndQuorumEpochRequest."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "topic_name string 0+",
        "partitions []EndQuorumEpochRequestPartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[EndQuorumEpochRequestPartitionData] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[EndQuorumEpochRequestPartitionData] = [] if partitions is FRESH else partitions


class LeaderEndpoint(Message):
    """Part of EndQuorumEpochRequest."""

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


class EndQuorumEpochRequest(Message):
    """End quorum epoch request, versions 0-1, flexible from 1."""

    __slots__ = (
        "cluster_id",
        "topics",
        "leader_endpoints",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "cluster_id string 0+ nullable=0+ default=null",
        "topics []EndQuorumEpochRequestTopicData 0+",
        "leader_endpoints []LeaderEndpoint 1+ ignorable",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: list[EndQuorumEpochRequestTopicData] = FRESH,
        leader_endpoints: list[LeaderEndpoint] = FRESH,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics: list[EndQuorumEpochRequestTopicData] = [] if topics is FRESH else topics
        self.leader_endpoints: list[LeaderEndpoint] = [] if leader_endpoints is FRESH else leader_endpoints


class EndQuorumEpochResponsePartitionData(Message):
    """Part of EndQuorumEpochResponse."""

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


class EndQuorumEpochResponseTopicData(Message):
    """Part of EndQuorumEpochResponse."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "topic_name string 0+",
        "partitions []EndQuorumEpochResponsePartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[EndQuorumEpochResponsePartitionData] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[EndQuorumEpochResponsePartitionData] = [] if partitions is FRESH else partitions


class NodeEndpoint(Message):
    """Part of EndQuorumEpochResponse."""

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


class EndQuorumEpochResponse(Message):
    """End quorum epoch response, versions 0-1, flexible from 1."""

    __slots__ = (
        "error_code",
        "topics",
        "node_endpoints",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "error_code int16 0+",
        "topics []EndQuorumEpochResponseTopicData 0+",
        "node_endpoints []NodeEndpoint 1+ tag=0 tagged=1+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[EndQuorumEpochResponseTopicData] = FRESH,
        node_endpoints: list[NodeEndpoint] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.topics: list[EndQuorumEpochResponseTopicData] = [] if topics is FRESH else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is FRESH else node_endpoints
