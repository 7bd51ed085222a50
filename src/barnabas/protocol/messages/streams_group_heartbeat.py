"""StreamsGroupHeartbeatRequest and StreamsGroupHeartbeatResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class KeyValue(Message):
    """Part of StreamsGroupHeartbeatRequest."""

    __slots__ = (
        "key",
        "value",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "key string 0+",
        "value string 0+",
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key = key
        self.value = value


class TopicInfo(Message):
    """Part of StreamsGroupHeartbeatRequest."""

    __slots__ = (
        "name",
        "partitions",
        "replication_factor",
        "topic_configs",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "partitions int32 0+",
        "replication_factor int16 0+",
        "topic_configs []KeyValue 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] = FRESH,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs: list[KeyValue] = [] if topic_configs is FRESH else topic_configs


class StreamsGroupHeartbeatRequestEndpoint(Message):
    """Part of StreamsGroupHeartbeatRequest."""

    __slots__ = (
        "host",
        "port",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "host string 0+",
        "port uint16 0+",
    )

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port


class TaskOffset(Message):
    """Part of StreamsGroupHeartbeatRequest."""

    __slots__ = (
        "subtopology_id",
        "partition",
        "offset",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "subtopology_id string 0+",
        "partition int32 0+",
        "offset int64 0+",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset


class StreamsGroupHeartbeatRequestTaskIds(Message):
    """Part of StreamsGroupHeartbeatRequest."""

    __slots__ = (
        "subtopology_id",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "subtopology_id string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class CopartitionGroup(Message):
    """Part of StreamsGroupHeartbeatRequest."""

    __slots__ = (
        "source_topics",
        "source_topic_regex",
        "repartition_source_topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "source_topics []int16 0+",
        "source_topic_regex []int16 0+",
        "repartition_source_topics []int16 0+",
    )

    def __init__(
        self,
        *,
        source_topics: list[int] = FRESH,
        source_topic_regex: list[int] = FRESH,
        repartition_source_topics: list[int] = FRESH,
    ) -> None:
        self.source_topics: list[int] = [] if source_topics is FRESH else source_topics
        self.source_topic_regex: list[int] = [] if source_topic_regex is FRESH else source_topic_regex
        self.repartition_source_topics: list[int] = [] if repartition_source_topics is FRESH else repartition_source_topics


class Subtopology(Message):
    """Part of StreamsGroupHeartbeatRequest."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "subtopology_id string 0+",
        "source_topics []string 0+",
        "source_topic_regex []string 0+",
        "state_changelog_topics []TopicInfo 0+",
        "repartition_sink_topics []string 0+",
        "repartition_source_topics []TopicInfo 0+",
        "copartition_groups []CopartitionGroup 0+",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = FRESH,
        source_topic_regex: list[str] = FRESH,
        state_changelog_topics: list[TopicInfo] = FRESH,
        repartition_sink_topics: list[str] = FRESH,
        repartition_source_topics: list[TopicInfo] = FRESH,
        copartition_groups: list[CopartitionGroup] = FRESH,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics: list[str] = [] if source_topics is FRESH else source_topics
        self.source_topic_regex: list[str] = [] if source_topic_regex is FRESH else source_topic_regex
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is FRESH else state_changelog_topics
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is FRESH else repartition_sink_topics
        self.repartition_source_topics: list[TopicInfo] = [] if repartition_source_topics is FRESH else repartition_source_topics
        self.copartition_groups: list[CopartitionGroup] = [] if copartition_groups is FRESH else copartition_groups


class Topology(Message):
    """Part of StreamsGroupHeartbeatRequest."""

    __slots__ = (
        "epoch",
        "subtopologies",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "epoch int32 0+",
        "subtopologies []Subtopology 0+",
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] = FRESH,
    ) -> None:
        self.epoch = epoch
        self.subtopologies: list[Subtopology] = [] if subtopologies is FRESH else subtopologies


class StreamsGroupHeartbeatRequest(Message):
    """Streams group heartbeat request, version 0, flexible from 0."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "member_id string 0+",
        "member_epoch int32 0+",
        "endpoint_information_epoch int32 0+",
        "instance_id string 0+ nullable=0+ default=null",
        "rack_id string 0+ nullable=0+ default=null",
        "rebalance_timeout_ms int32 0+ default=-1",
        "topology Topology 0+ nullable=0+ default=null",
        "active_tasks []StreamsGroupHeartbeatRequestTaskIds 0+ nullable=0+ default=null",
        "standby_tasks []StreamsGroupHeartbeatRequestTaskIds 0+ nullable=0+ default=null",
        "warmup_tasks []StreamsGroupHeartbeatRequestTaskIds 0+ nullable=0+ default=null",
        "process_id string 0+ nullable=0+ default=null",
        "user_endpoint StreamsGroupHeartbeatRequestEndpoint 0+ nullable=0+ default=null",
        "client_tags []KeyValue 0+ nullable=0+ default=null",
        "task_offsets []TaskOffset 0+ nullable=0+ default=null",
        "task_end_offsets []TaskOffset 0+ nullable=0+ default=null",
        "shutdown_application bool 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application


class Status(Message):
    """Part of StreamsGroupHeartbeatResponse."""

    __slots__ = (
        "status_code",
        "status_detail",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "status_code int8 0+",
        "status_detail string 0+",
    )

    def __init__(
        self,
        *,
        status_code: int = 0,
        status_detail: str = "",
    ) -> None:
        self.status_code = status_code
        self.status_detail = status_detail


class TopicPartition(Message):
    """Part of StreamsGroupHeartbeatResponse."""

    __slots__ = (
        "topic",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic = topic
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class StreamsGroupHeartbeatResponseTaskIds(Message):
    """Part of StreamsGroupHeartbeatResponse."""

    __slots__ = (
        "subtopology_id",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "subtopology_id string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class StreamsGroupHeartbeatResponseEndpoint(Message):
    """Part of StreamsGroupHeartbeatResponse."""

    __slots__ = (
        "host",
        "port",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "host string 0+",
        "port uint16 0+",
    )

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port


class EndpointToPartitions(Message):
    """Part of StreamsGroupHeartbeatResponse."""

    __slots__ = (
        "user_endpoint",
        "active_partitions",
        "standby_partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "user_endpoint StreamsGroupHeartbeatResponseEndpoint 0+",
        "active_partitions []TopicPartition 0+",
        "standby_partitions []TopicPartition 0+",
    )

    def __init__(
        self,
        *,
        user_endpoint: StreamsGroupHeartbeatResponseEndpoint = FRESH,
        active_partitions: list[TopicPartition] = FRESH,
        standby_partitions: list[TopicPartition] = FRESH,
    ) -> None:
        self.user_endpoint: StreamsGroupHeartbeatResponseEndpoint = StreamsGroupHeartbeatResponseEndpoint() if user_endpoint is FRESH else user_endpoint
        self.active_partitions: list[TopicPartition] = [] if active_partitions is FRESH else active_partitions
        self.standby_partitions: list[TopicPartition] = [] if standby_partitions is FRESH else standby_partitions


class StreamsGroupHeartbeatResponse(Message):
    """Streams group heartbeat response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag",
        "task_offset_interval_ms",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "member_id string 0+",
        "member_epoch int32 0+",
        "heartbeat_interval_ms int32 0+",
        "acceptable_recovery_lag int32 0+",
        "task_offset_interval_ms int32 0+",
        "status []Status 0+ nullable=0+",
        "active_tasks []StreamsGroupHeartbeatResponseTaskIds 0+ nullable=0+ default=null",
        "standby_tasks []StreamsGroupHeartbeatResponseTaskIds 0+ nullable=0+ default=null",
        "warmup_tasks []StreamsGroupHeartbeatResponseTaskIds 0+ nullable=0+ default=null",
        "endpoint_information_epoch int32 0+",
        "partitions_by_user_endpoint []EndpointToPartitions 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[Status] | None = FRESH,
        active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.task_offset_interval_ms = task_offset_interval_ms
        self.status: list[Status] | None = [] if status is FRESH else status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint
