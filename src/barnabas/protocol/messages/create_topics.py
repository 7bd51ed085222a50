"""CreateTopicsRequest and CreateTopicsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class CreatableReplicaAssignment(Message):
    """Part of CreateTopicsRequest."""

    __slots__ = (
        "partition_index",
        "broker_ids",
    )
    VERSIONS = (2, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        "partition_index int32 0+",
        "broker_ids []int32 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: list[int] = FRESH,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids: list[int] = [] if broker_ids is FRESH else broker_ids


class CreatableTopicConfig(Message):
    """Part of CreateTopicsRequest."""

    __slots__ = (
        "name",
        "value",
    )
    VERSIONS = (2, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        "name string 0+",
        "value string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


class CreatableTopic(Message):
    """Part of CreateTopicsRequest."""

    __slots__ = (
        "name",
        "num_partitions",
        "replication_factor",
        "assignments",
        "configs",
    )
    VERSIONS = (2, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        "name string 0+",
        "num_partitions int32 0+",
        "replication_factor int16 0+",
        "assignments []CreatableReplicaAssignment 0+",
        "configs []CreatableTopicConfig 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = FRESH,
        configs: list[CreatableTopicConfig] = FRESH,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments: list[CreatableReplicaAssignment] = [] if assignments is FRESH else assignments
        self.configs: list[CreatableTopicConfig] = [] if configs is FRESH else configs


class CreateTopicsRequest(Message):
    """Create topics request, versions 2-7, flexible from 5."""

    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )
    VERSIONS = (2, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        "topics []CreatableTopic 0+",
        "timeout_ms int32 0+ default=60000",
        "validate_only bool 1+",
    )

    def __init__(
        self,
        *,
        topics: list[CreatableTopic] = FRESH,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatableTopic] = [] if topics is FRESH else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatableTopicConfigs(Message):
    """Part of CreateTopicsResponse."""

    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
    )
    VERSIONS = (2, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        "name string 5+",
        "value string 5+ nullable=5+",
        "read_only bool 5+",
        "config_source int8 5+ default=-1 ignorable",
        "is_sensitive bool 5+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(Message):
    """Part of CreateTopicsResponse."""

    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "topic_config_error_code",
        "num_partitions",
        "replication_factor",
        "configs",
    )
    VERSIONS = (2, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        "name string 0+",
        "topic_id uuid 7+ ignorable",
        "error_code int16 0+",
        "error_message string 1+ nullable=0+ ignorable",
        "topic_config_error_code int16 5+ tag=0 tagged=5+ ignorable",
        "num_partitions int32 5+ default=-1 ignorable",
        "replication_factor int16 5+ default=-1 ignorable",
        "configs []CreatableTopicConfigs 5+ nullable=5+ ignorable",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = FRESH,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs: list[CreatableTopicConfigs] | None = [] if configs is FRESH else configs


class CreateTopicsResponse(Message):
    """Create topics response, versions 2-7, flexible from 5."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    VERSIONS = (2, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        "throttle_time_ms int32 2+ ignorable",
        "topics []CreatableTopicResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[CreatableTopicResult] = [] if topics is FRESH else topics
