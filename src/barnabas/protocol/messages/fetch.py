"""FetchRequest and FetchResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message, Records


class ReplicaState(Message):
    """Part of FetchRequest."""

    __slots__ = (
        "replica_id",
        "replica_epoch",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "replica_id int32 15+ default=-1",
        "replica_epoch int64 15+ default=-1",
    )

    def __init__(
        self,
        *,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


class FetchPartition(Message):
    """Part of FetchRequest."""

    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "partition int32 0+",
        "current_leader_epoch int32 9+ default=-1 ignorable",
        "fetch_offset int64 0+",
        "last_fetched_epoch int32 12+ default=-1",
        "log_start_offset int64 5+ default=-1 ignorable",
        "partition_max_bytes int32 0+",
        "replica_directory_id uuid 17+ tag=0 tagged=17+ ignorable",
        "high_watermark int64 18+ default=9223372036854775807 tag=1 tagged=18+ ignorable",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = bytes(16),
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark


class FetchTopic(Message):
    """Part of FetchRequest."""

    __slots__ = (
        "topic",
        "topic_id",
        "partitions",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "topic string 0-12 ignorable",
        "topic_id uuid 13+ ignorable",
        "partitions []FetchPartition 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[FetchPartition] = FRESH,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is FRESH else partitions


class ForgottenTopic(Message):
    """Part of FetchRequest."""

    __slots__ = (
        "topic",
        "topic_id",
        "partitions",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "topic string 7-12 ignorable",
        "topic_id uuid 13+ ignorable",
        "partitions []int32 7+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class FetchRequest(Message):
    """Fetch request, versions 4-18, flexible from 12."""

    __slots__ = (
        "cluster_id",
        "replica_id",
        "replica_state",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "cluster_id string 12+ nullable=12+ default=null tag=0 tagged=12+ ignorable",
        "replica_id int32 0-14 default=-1",
        "replica_state ReplicaState 15+ tag=1 tagged=15+",
        "max_wait_ms int32 0+",
        "min_bytes int32 0+",
        "max_bytes int32 3+ default=2147483647 ignorable",
        "isolation_level int8 4+ ignorable",
        "session_id int32 7+ ignorable",
        "session_epoch int32 7+ default=-1 ignorable",
        "topics []FetchTopic 0+",
        "forgotten_topics_data []ForgottenTopic 7+",
        "rack_id string 11+ ignorable",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState = FRESH,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] = FRESH,
        forgotten_topics_data: list[ForgottenTopic] = FRESH,
        rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state: ReplicaState = ReplicaState() if replica_state is FRESH else replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics: list[FetchTopic] = [] if topics is FRESH else topics
        self.forgotten_topics_data: list[ForgottenTopic] = [] if forgotten_topics_data is FRESH else forgotten_topics_data
        self.rack_id = rack_id


class EpochEndOffset(Message):
    """Part of FetchResponse."""

    __slots__ = (
        "epoch",
        "end_offset",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "epoch int32 12+ default=-1",
        "end_offset int64 12+ default=-1",
    )

    def __init__(
        self,
        *,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset


class LeaderIdAndEpoch(Message):
    """Part of FetchResponse."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "leader_id int32 12+ default=-1",
        "leader_epoch int32 12+ default=-1",
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class SnapshotId(Message):
    """Part of FetchResponse."""

    __slots__ = (
        "end_offset",
        "epoch",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "end_offset int64 0+ default=-1",
        "epoch int32 0+ default=-1",
    )

    def __init__(
        self,
        *,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class AbortedTransaction(Message):
    """Part of FetchResponse."""

    __slots__ = (
        "producer_id",
        "first_offset",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "producer_id int64 4+",
        "first_offset int64 4+",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset


class PartitionData(Message):
    """Part of FetchResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "high_watermark int64 0+",
        "last_stable_offset int64 4+ default=-1 ignorable",
        "log_start_offset int64 5+ default=-1 ignorable",
        "diverging_epoch EpochEndOffset 12+ tag=0 tagged=12+",
        "current_leader LeaderIdAndEpoch 12+ tag=1 tagged=12+",
        "snapshot_id SnapshotId 12+ tag=2 tagged=12+",
        "aborted_transactions []AbortedTransaction 4+ nullable=4+ ignorable",
        "preferred_read_replica int32 11+ default=-1",
        "records records 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset = FRESH,
        current_leader: LeaderIdAndEpoch = FRESH,
        snapshot_id: SnapshotId = FRESH,
        aborted_transactions: list[AbortedTransaction] | None = FRESH,
        preferred_read_replica: int = -1,
        records: Records | None = b"",
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch: EpochEndOffset = EpochEndOffset() if diverging_epoch is FRESH else diverging_epoch
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is FRESH else current_leader
        self.snapshot_id: SnapshotId = SnapshotId() if snapshot_id is FRESH else snapshot_id
        self.aborted_transactions: list[AbortedTransaction] | None = [] if aborted_transactions is FRESH else aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


class FetchableTopicResponse(Message):
    """Part of FetchResponse."""

    __slots__ = (
        "topic",
        "topic_id",
        "partitions",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "topic string 0-12 ignorable",
        "topic_id uuid 13+ ignorable",
        "partitions []PartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = bytes(16),
        partitions: list[PartitionData] = FRESH,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions: list[PartitionData] = [] if partitions is FRESH else partitions


class NodeEndpoint(Message):
    """Part of FetchResponse."""

    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "node_id int32 16+",
        "host string 16+",
        "port int32 16+",
        "rack string 16+ nullable=16+ default=null",
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


class FetchResponse(Message):
    """Fetch response, versions 4-18, flexible from 12."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "session_id",
        "responses",
        "node_endpoints",
    )
    VERSIONS = (4, 18)
    FLEXIBLE_FROM = 12
    FIELDS = (
        "throttle_time_ms int32 1+ ignorable",
        "error_code int16 7+ ignorable",
        "session_id int32 7+",
        "responses []FetchableTopicResponse 0+",
        "node_endpoints []NodeEndpoint 16+ tag=0 tagged=16+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] = FRESH,
        node_endpoints: list[NodeEndpoint] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses: list[FetchableTopicResponse] = [] if responses is FRESH else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is FRESH else node_endpoints
