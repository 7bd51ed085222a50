"""StreamsGroupDescribeRequest and StreamsGroupDescribeResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class StreamsGroupDescribeRequest(Message):
    """Streams group describe request, version 0, flexible from 0."""

    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_ids []string 0+",
        "include_authorized_operations bool 0+",
    )

    def __init__(
        self,
        *,
        group_ids: list[str] = FRESH,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is FRESH else group_ids
        self.include_authorized_operations = include_authorized_operations


class Endpoint(Message):
    """Part of StreamsGroupDescribeResponse."""

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
    """Part of StreamsGroupDescribeResponse."""

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


class Assignment(Message):
    """Part of StreamsGroupDescribeResponse."""

    __slots__ = (
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "active_tasks []TaskIds 0+",
        "standby_tasks []TaskIds 0+",
        "warmup_tasks []TaskIds 0+",
    )

    def __init__(
        self,
        *,
        active_tasks: list[TaskIds] = FRESH,
        standby_tasks: list[TaskIds] = FRESH,
        warmup_tasks: list[TaskIds] = FRESH,
    ) -> None:
        self.active_tasks: list[TaskIds] = [] if active_tasks is FRESH else active_tasks
        self.standby_tasks: list[TaskIds] = [] if standby_tasks is FRESH else standby_tasks
        self.warmup_tasks: list[TaskIds] = [] if warmup_tasks is FRESH else warmup_tasks


class TaskIds(Message):
    """Part of StreamsGroupDescribeResponse."""

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


class KeyValue(Message):
    """Part of StreamsGroupDescribeResponse."""

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
    """Part of StreamsGroupDescribeResponse."""

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


class Subtopology(Message):
    """Part of StreamsGroupDescribeResponse."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "subtopology_id string 0+",
        "source_topics []string 0+",
        "repartition_sink_topics []string 0+",
        "state_changelog_topics []TopicInfo 0+",
        "repartition_source_topics []TopicInfo 0+",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = FRESH,
        repartition_sink_topics: list[str] = FRESH,
        state_changelog_topics: list[TopicInfo] = FRESH,
        repartition_source_topics: list[TopicInfo] = FRESH,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics: list[str] = [] if source_topics is FRESH else source_topics
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is FRESH else repartition_sink_topics
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is FRESH else state_changelog_topics
        self.repartition_source_topics: list[TopicInfo] = [] if repartition_source_topics is FRESH else repartition_source_topics


class Topology(Message):
    """Part of StreamsGroupDescribeResponse."""

    __slots__ = (
        "epoch",
        "subtopologies",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "epoch int32 0+",
        "subtopologies []Subtopology 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies


class Member(Message):
    """Part of StreamsGroupDescribeResponse."""

    __slots__ = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "member_id string 0+",
        "member_epoch int32 0+",
        "instance_id string 0+ nullable=0+ default=null",
        "rack_id string 0+ nullable=0+ default=null",
        "client_id string 0+",
        "client_host string 0+",
        "topology_epoch int32 0+",
        "process_id string 0+",
        "user_endpoint Endpoint 0+ nullable=0+ default=null",
        "client_tags []KeyValue 0+",
        "task_offsets []TaskOffset 0+",
        "task_end_offsets []TaskOffset 0+",
        "assignment Assignment 0+",
        "target_assignment Assignment 0+",
        "is_classic bool 0+",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = FRESH,
        task_offsets: list[TaskOffset] = FRESH,
        task_end_offsets: list[TaskOffset] = FRESH,
        assignment: Assignment = FRESH,
        target_assignment: Assignment = FRESH,
        is_classic: bool = False,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags: list[KeyValue] = [] if client_tags is FRESH else client_tags
        self.task_offsets: list[TaskOffset] = [] if task_offsets is FRESH else task_offsets
        self.task_end_offsets: list[TaskOffset] = [] if task_end_offsets is FRESH else task_end_offsets
        self.assignment: Assignment = Assignment() if assignment is FRESH else assignment
        self.target_assignment: Assignment = Assignment() if target_assignment is FRESH else target_assignment
        self.is_classic = is_classic


class DescribedGroup(Message):
    """Part of StreamsGroupDescribeResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "group_id string 0+",
        "group_state string 0+",
        "group_epoch int32 0+",
        "assignment_epoch int32 0+",
        "topology Topology 0+ nullable=0+ default=null",
        "members []Member 0+",
        "authorized_operations int32 0+ default=-2147483648",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] = FRESH,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.topology = topology
        self.members: list[Member] = [] if members is FRESH else members
        self.authorized_operations = authorized_operations


class StreamsGroupDescribeResponse(Message):
    """Streams group describe response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "groups []DescribedGroup 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is FRESH else groups
