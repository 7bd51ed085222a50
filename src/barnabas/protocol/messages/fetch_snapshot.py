"""FetchSnapshotRequest and FetchSnapshotResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message, Records


class FetchSnapshotRequestSnapshotId(Message):
    """Part of FetchSnapshotRequest."""

    __slots__ = (
        "end_offset",
        "epoch",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "end_offset int64 0+",
        "epoch int32 0+",
    )

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class FetchSnapshotRequestPartitionSnapshot(Message):
    """Part of FetchSnapshotRequest."""

    __slots__ = (
        "partition",
        "current_leader_epoch",
        "snapshot_id",
        "position",
        "replica_directory_id",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition int32 0+",
        "current_leader_epoch int32 0+",
        "snapshot_id FetchSnapshotRequestSnapshotId 0+",
        "position int64 0+",
        "replica_directory_id uuid 1+ tag=0 tagged=1+ ignorable",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = 0,
        snapshot_id: FetchSnapshotRequestSnapshotId = FRESH,
        position: int = 0,
        replica_directory_id: bytes = bytes(16),
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.snapshot_id: FetchSnapshotRequestSnapshotId = FetchSnapshotRequestSnapshotId() if snapshot_id is FRESH else snapshot_id
        self.position = position
        self.replica_directory_id = replica_directory_id


class FetchSnapshotRequestTopicSnapshot(Message):
    """Part of FetchSnapshotRequest."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "partitions []FetchSnapshotRequestPartitionSnapshot 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotRequestPartitionSnapshot] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[FetchSnapshotRequestPartitionSnapshot] = [] if partitions is FRESH else partitions


class FetchSnapshotRequest(Message):
    """Fetch snapshot request, versions 0-1, flexible from 0."""

    __slots__ = (
        "cluster_id",
        "replica_id",
        "max_bytes",
        "topics",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "cluster_id string 0+ nullable=0+ default=null tag=0 tagged=0+",
        "replica_id int32 0+ default=-1",
        "max_bytes int32 0+ default=2147483647",
        "topics []FetchSnapshotRequestTopicSnapshot 0+",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequestTopicSnapshot] = FRESH,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.max_bytes = max_bytes
        self.topics: list[FetchSnapshotRequestTopicSnapshot] = [] if topics is FRESH else topics


class FetchSnapshotResponseSnapshotId(Message):
    """Part of FetchSnapshotResponse."""

    __slots__ = (
        "end_offset",
        "epoch",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "end_offset int64 0+",
        "epoch int32 0+",
    )

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class LeaderIdAndEpoch(Message):
    """Part of FetchSnapshotResponse."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "leader_id int32 0+",
        "leader_epoch int32 0+",
    )

    def __init__(
        self,
        *,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class FetchSnapshotResponsePartitionSnapshot(Message):
    """Part of FetchSnapshotResponse."""

    __slots__ = (
        "index",
        "error_code",
        "snapshot_id",
        "current_leader",
        "size",
        "position",
        "unaligned_records",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "index int32 0+",
        "error_code int16 0+",
        "snapshot_id FetchSnapshotResponseSnapshotId 0+",
        "current_leader LeaderIdAndEpoch 0+ tag=0 tagged=0+",
        "size int64 0+",
        "position int64 0+",
        "unaligned_records records 0+",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        snapshot_id: FetchSnapshotResponseSnapshotId = FRESH,
        current_leader: LeaderIdAndEpoch = FRESH,
        size: int = 0,
        position: int = 0,
        unaligned_records: Records = b"",
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.snapshot_id: FetchSnapshotResponseSnapshotId = FetchSnapshotResponseSnapshotId() if snapshot_id is FRESH else snapshot_id
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is FRESH else current_leader
        self.size = size
        self.position = position
        self.unaligned_records = unaligned_records


class FetchSnapshotResponseTopicSnapshot(Message):
    """Part of FetchSnapshotResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "partitions []FetchSnapshotResponsePartitionSnapshot 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotResponsePartitionSnapshot] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[FetchSnapshotResponsePartitionSnapshot] = [] if partitions is FRESH else partitions


class NodeEndpoint(Message):
    """Part of FetchSnapshotResponse."""

    __slots__ = (
        "node_id",
        "host",
        "port",
    )
    VERSIONS = (0, 1)
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


class FetchSnapshotResponse(Message):
    """Fetch snapshot response, versions 0-1, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "topics",
        "node_endpoints",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+ ignorable",
        "error_code int16 0+",
        "topics []FetchSnapshotResponseTopicSnapshot 0+",
        "node_endpoints []NodeEndpoint 1+ tag=0 tagged=1+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponseTopicSnapshot] = FRESH,
        node_endpoints: list[NodeEndpoint] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics: list[FetchSnapshotResponseTopicSnapshot] = [] if topics is FRESH else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is FRESH else node_endpoints
