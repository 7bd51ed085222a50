"""VoteRequest and VoteResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class VoteRequestPartitionData(Message):
    """Part of VoteRequest."""

    __slots__ = (
        "partition_index",
        "replica_epoch",
        "replica_id",
        "replica_directory_id",
        "voter_directory_id",
        "last_offset_epoch",
        "last_offset",
        "pre_vote",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "replica_epoch int32 0+",
        "replica_id int32 0+",
        "replica_directory_id uuid 1+ ignorable",
        "voter_directory_id uuid 1+ ignorable",
        "last_offset_epoch int32 0+",
        "last_offset int64 0+",
        "pre_vote bool 2+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replica_epoch: int = 0,
        replica_id: int = 0,
        replica_directory_id: bytes = bytes(16),
        voter_directory_id: bytes = bytes(16),
        last_offset_epoch: int = 0,
        last_offset: int = 0,
        pre_vote: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.replica_epoch = replica_epoch
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.voter_directory_id = voter_directory_id
        self.last_offset_epoch = last_offset_epoch
        self.last_offset = last_offset
        self.pre_vote = pre_vote


class VoteRequestTopicData(Message):
    """Part of VoteRequest."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "partitions []VoteRequestPartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteRequestPartitionData] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[VoteRequestPartitionData] = [] if partitions is FRESH else partitions


class VoteRequest(Message):
    """Vote request, versions 0-2, flexible from 0."""

    __slots__ = (
        "cluster_id",
        "voter_id",
        "topics",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "cluster_id string 0+ nullable=0+ default=null",
        "voter_id int32 1+ default=-1 ignorable",
        "topics []VoteRequestTopicData 0+",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[VoteRequestTopicData] = FRESH,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics: list[VoteRequestTopicData] = [] if topics is FRESH else topics


class VoteResponsePartitionData(Message):
    """Part of VoteResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
        "vote_granted",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "leader_id int32 0+",
        "leader_epoch int32 0+",
        "vote_granted bool 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        vote_granted: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.vote_granted = vote_granted


class VoteResponseTopicData(Message):
    """Part of VoteResponse."""

    __slots__ = (
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "partitions []VoteResponsePartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteResponsePartitionData] = FRESH,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: list[VoteResponsePartitionData] = [] if partitions is FRESH else partitions


class NodeEndpoint(Message):
    """Part of VoteResponse."""

    __slots__ = (
        "node_id",
        "host",
        "port",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
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


class VoteResponse(Message):
    """Vote response, versions 0-2, flexible from 0."""

    __slots__ = (
        "error_code",
        "topics",
        "node_endpoints",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "error_code int16 0+",
        "topics []VoteResponseTopicData 0+",
        "node_endpoints []NodeEndpoint 1+ tag=0 tagged=1+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[VoteResponseTopicData] = FRESH,
        node_endpoints: list[NodeEndpoint] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.topics: list[VoteResponseTopicData] = [] if topics is FRESH else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is FRESH else node_endpoints
