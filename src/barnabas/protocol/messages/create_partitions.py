"""CreatePartitionsRequest and CreatePartitionsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class CreatePartitionsAssignment(Message):
    """Part of CreatePartitionsRequest."""

    __slots__ = (
        "broker_ids",
    )
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "broker_ids []int32 0+",
    )

    def __init__(
        self,
        *,
        broker_ids: list[int] = FRESH,
    ) -> None:
        self.broker_ids: list[int] = [] if broker_ids is FRESH else broker_ids


class CreatePartitionsTopic(Message):
    """Part of CreatePartitionsRequest."""

    __slots__ = (
        "name",
        "count",
        "assignments",
    )
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "name string 0+",
        "count int32 0+",
        "assignments []CreatePartitionsAssignment 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = FRESH,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments: list[CreatePartitionsAssignment] | None = [] if assignments is FRESH else assignments


class CreatePartitionsRequest(Message):
    """Create partitions request, versions 0-3, flexible from 2."""

    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "topics []CreatePartitionsTopic 0+",
        "timeout_ms int32 0+",
        "validate_only bool 0+",
    )

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] = FRESH,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatePartitionsTopic] = [] if topics is FRESH else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatePartitionsTopicResult(Message):
    """Part of CreatePartitionsResponse."""

    __slots__ = (
        "name",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "name string 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


class CreatePartitionsResponse(Message):
    """Create partitions response, versions 0-3, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+",
        "results []CreatePartitionsTopicResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[CreatePartitionsTopicResult] = [] if results is FRESH else results
