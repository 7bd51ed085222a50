"""MetadataRequest and MetadataResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class MetadataRequestTopic(Message):
    """Part of MetadataRequest."""

    __slots__ = (
        "topic_id",
        "name",
    )
    VERSIONS = (0, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "topic_id uuid 10+ ignorable",
        "name string 0+ nullable=10+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        name: str | None = "",
    ) -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequest(Message):
    """Metadata request, versions 0-13, flexible from 9."""

    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    VERSIONS = (0, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "topics []MetadataRequestTopic 0+ nullable=1+",
        "allow_auto_topic_creation bool 4+ default=true",
        "include_cluster_authorized_operations bool 8-10",
        "include_topic_authorized_operations bool 8+",
    )

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None = FRESH,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics: list[MetadataRequestTopic] | None = [] if topics is FRESH else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations


class MetadataResponseBroker(Message):
    """Part of MetadataResponse."""

    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    VERSIONS = (0, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "node_id int32 0+",
        "host string 0+",
        "port int32 0+",
        "rack string 1+ nullable=1+ default=null ignorable",
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class MetadataResponsePartition(Message):
    """Part of MetadataResponse."""

    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
    )
    VERSIONS = (0, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "error_code int16 0+",
        "partition_index int32 0+",
        "leader_id int32 0+",
        "leader_epoch int32 7+ default=-1 ignorable",
        "replica_nodes []int32 0+",
        "isr_nodes []int32 0+",
        "offline_replicas []int32 5+ ignorable",
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
        offline_replicas: list[int] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is FRESH else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is FRESH else isr_nodes
        self.offline_replicas: list[int] = [] if offline_replicas is FRESH else offline_replicas


class MetadataResponseTopic(Message):
    """Part of MetadataResponse."""

    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )
    VERSIONS = (0, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "error_code int16 0+",
        "name string 0+ nullable=12+",
        "topic_id uuid 10+ ignorable",
        "is_internal bool 1+ ignorable",
        "partitions []MetadataResponsePartition 0+",
        "topic_authorized_operations int32 8+ default=-2147483648",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = bytes(16),
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] = FRESH,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions: list[MetadataResponsePartition] = [] if partitions is FRESH else partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponse(Message):
    """Metadata response, versions 0-13, flexible from 9."""

    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
    )
    VERSIONS = (0, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "throttle_time_ms int32 3+ ignorable",
        "brokers []MetadataResponseBroker 0+",
        "cluster_id string 2+ nullable=2+ default=null ignorable",
        "controller_id int32 1+ default=-1 ignorable",
        "topics []MetadataResponseTopic 0+",
        "cluster_authorized_operations int32 8-10 default=-2147483648",
        "error_code int16 13+ ignorable",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] = FRESH,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] = FRESH,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers: list[MetadataResponseBroker] = [] if brokers is FRESH else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics: list[MetadataResponseTopic] = [] if topics is FRESH else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
