"""ShareFetchRequest and ShareFetchResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message, Records


class AcknowledgementBatch(Message):
    """Part of ShareFetchRequest."""

    __slots__ = (
        "first_offset",
        "last_offset",
        "acknowledge_types",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "first_offset int64 0+",
        "last_offset int64 0+",
        "acknowledge_types []int8 0+",
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = FRESH,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types: list[int] = [] if acknowledge_types is FRESH else acknowledge_types


class FetchPartition(Message):
    """Part of ShareFetchRequest."""

    __slots__ = (
        "partition_index",
        "partition_max_bytes",
        "acknowledgement_batches",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "partition_max_bytes int32 0",
        "acknowledgement_batches []AcknowledgementBatch 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_max_bytes: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = FRESH,
    ) -> None:
        self.partition_index = partition_index
        self.partition_max_bytes = partition_max_bytes
        self.acknowledgement_batches: list[AcknowledgementBatch] = [] if acknowledgement_batches is FRESH else acknowledgement_batches


class FetchTopic(Message):
    """Part of ShareFetchRequest."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "partitions []FetchPartition 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[FetchPartition] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is FRESH else partitions


class ForgottenTopic(Message):
    """Part of ShareFetchRequest."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class ShareFetchRequest(Message):
    """Share fetch request, versions 1-2, flexible from 0."""

    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+ nullable=0+ default=null",
        "member_id string 0+ nullable=0+",
        "share_session_epoch int32 0+",
        "max_wait_ms int32 0+",
        "min_bytes int32 0+",
        "max_bytes int32 0+ default=2147483647",
        "max_records int32 1+",
        "batch_size int32 1+",
        "share_acquire_mode int8 2+ ignorable",
        "is_renew_ack bool 2+",
        "topics []FetchTopic 0+",
        "forgotten_topics_data []ForgottenTopic 0+",
    )

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[FetchTopic] = FRESH,
        forgotten_topics_data: list[ForgottenTopic] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics: list[FetchTopic] = [] if topics is FRESH else topics
        self.forgotten_topics_data: list[ForgottenTopic] = [] if forgotten_topics_data is FRESH else forgotten_topics_data


class LeaderIdAndEpoch(Message):
    """Part of ShareFetchResponse."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
    )
    VERSIONS = (1, 2)
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


class AcquiredRecords(Message):
    """Part of ShareFetchResponse."""

    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_count",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "first_offset int64 0+",
        "last_offset int64 0+",
        "delivery_count int16 0+",
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_count = delivery_count


class PartitionData(Message):
    """Part of ShareFetchResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "acknowledge_error_code",
        "acknowledge_error_message",
        "current_leader",
        "records",
        "acquired_records",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "acknowledge_error_code int16 0+",
        "acknowledge_error_message string 0+ nullable=0+ default=null",
        "current_leader LeaderIdAndEpoch 0+",
        "records records 0+ nullable=0",
        "acquired_records []AcquiredRecords 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = FRESH,
        records: Records | None = b"",
        acquired_records: list[AcquiredRecords] = FRESH,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.acknowledge_error_code = acknowledge_error_code
        self.acknowledge_error_message = acknowledge_error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is FRESH else current_leader
        self.records = records
        self.acquired_records: list[AcquiredRecords] = [] if acquired_records is FRESH else acquired_records


class ShareFetchableTopicResponse(Message):
    """Part of ShareFetchResponse."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "partitions []PartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[PartitionData] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[PartitionData] = [] if partitions is FRESH else partitions


class NodeEndpoint(Message):
    """Part of ShareFetchResponse."""

    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "node_id int32 0+",
        "host string 0+",
        "port int32 0+",
        "rack string 0+ nullable=0+ default=null",
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


class ShareFetchResponse(Message):
    """Share fetch response, versions 1-2, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "acquisition_lock_timeout_ms int32 1+",
        "responses []ShareFetchableTopicResponse 0+",
        "node_endpoints []NodeEndpoint 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] = FRESH,
        node_endpoints: list[NodeEndpoint] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses: list[ShareFetchableTopicResponse] = [] if responses is FRESH else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is FRESH else node_endpoints
