"""ProduceRequest and ProduceResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message, Records


class PartitionProduceData(Message):
    """Part of ProduceRequest."""

    __slots__ = (
        "index",
        "records",
    )
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "index int32 0+",
        "records records 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        records: Records | None = b"",
    ) -> None:
        self.index = index
        self.records = records


class TopicProduceData(Message):
    """Part of ProduceRequest."""

    __slots__ = (
        "name",
        "topic_id",
        "partition_data",
    )
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "name string 0-12 ignorable",
        "topic_id uuid 13+ ignorable",
        "partition_data []PartitionProduceData 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partition_data: list[PartitionProduceData] = FRESH,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data: list[PartitionProduceData] = [] if partition_data is FRESH else partition_data


class ProduceRequest(Message):
    """Produce request, versions 3-13, flexible from 9."""

    __slots__ = (
        "transactional_id",
        "acks",
        "timeout_ms",
        "topic_data",
    )
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "transactional_id string 3+ nullable=3+ default=null",
        "acks int16 0+",
        "timeout_ms int32 0+",
        "topic_data []TopicProduceData 0+",
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = FRESH,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data: list[TopicProduceData] = [] if topic_data is FRESH else topic_data


class BatchIndexAndErrorMessage(Message):
    """Part of ProduceResponse."""

    __slots__ = (
        "batch_index",
        "batch_index_error_message",
    )
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "batch_index int32 8+",
        "batch_index_error_message string 8+ nullable=8+ default=null",
    )

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


class LeaderIdAndEpoch(Message):
    """Part of ProduceResponse."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
    )
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "leader_id int32 10+ default=-1",
        "leader_epoch int32 10+ default=-1",
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionProduceResponse(Message):
    """Part of ProduceResponse."""

    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
    )
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "index int32 0+",
        "error_code int16 0+",
        "base_offset int64 0+",
        "log_append_time_ms int64 2+ default=-1 ignorable",
        "log_start_offset int64 5+ default=-1 ignorable",
        "record_errors []BatchIndexAndErrorMessage 8+ ignorable",
        "error_message string 8+ nullable=8+ default=null ignorable",
        "current_leader LeaderIdAndEpoch 10+ tag=0 tagged=10+",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] = FRESH,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = FRESH,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors: list[BatchIndexAndErrorMessage] = [] if record_errors is FRESH else record_errors
        self.error_message = error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is FRESH else current_leader


class TopicProduceResponse(Message):
    """Part of ProduceResponse."""

    __slots__ = (
        "name",
        "topic_id",
        "partition_responses",
    )
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "name string 0-12 ignorable",
        "topic_id uuid 13+ ignorable",
        "partition_responses []PartitionProduceResponse 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partition_responses: list[PartitionProduceResponse] = FRESH,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses: list[PartitionProduceResponse] = [] if partition_responses is FRESH else partition_responses


class NodeEndpoint(Message):
    """Part of ProduceResponse."""

    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "node_id int32 10+",
        "host string 10+",
        "port int32 10+",
        "rack string 10+ nullable=10+ default=null",
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


class ProduceResponse(Message):
    """Produce response, versions 3-13, flexible from 9."""

    __slots__ = (
        "responses",
        "throttle_time_ms",
        "node_endpoints",
    )
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    FIELDS = (
        "responses []TopicProduceResponse 0+",
        "throttle_time_ms int32 1+ ignorable",
        "node_endpoints []NodeEndpoint 10+ tag=0 tagged=10+",
    )

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] = FRESH,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = FRESH,
    ) -> None:
        self.responses: list[TopicProduceResponse] = [] if responses is FRESH else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is FRESH else node_endpoints
