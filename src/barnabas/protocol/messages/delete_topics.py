"""DeleteTopicsRequest and DeleteTopicsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DeleteTopicState(Message):
    """Part of DeleteTopicsRequest."""

    __slots__ = (
        "name",
        "topic_id",
    )
    VERSIONS = (1, 6)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "name string 6+ nullable=6+ default=null",
        "topic_id uuid 6+",
    )

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: bytes = bytes(16),
    ) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequest(Message):
    """Delete topics request, versions 1-6, flexible from 4."""

    __slots__ = (
        "topics",
        "topic_names",
        "timeout_ms",
    )
    VERSIONS = (1, 6)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "topics []DeleteTopicState 6+",
        "topic_names []string 0-5 ignorable",
        "timeout_ms int32 0+",
    )

    def __init__(
        self,
        *,
        topics: list[DeleteTopicState] = FRESH,
        topic_names: list[str] = FRESH,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteTopicState] = [] if topics is FRESH else topics
        self.topic_names: list[str] = [] if topic_names is FRESH else topic_names
        self.timeout_ms = timeout_ms


class DeletableTopicResult(Message):
    """Part of DeleteTopicsResponse."""

    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
    )
    VERSIONS = (1, 6)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "name string 0+ nullable=6+",
        "topic_id uuid 6+ ignorable",
        "error_code int16 0+",
        "error_message string 5+ nullable=5+ default=null ignorable",
    )

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: bytes = bytes(16),
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponse(Message):
    """Delete topics response, versions 1-6, flexible from 4."""

    __slots__ = (
        "throttle_time_ms",
        "responses",
    )
    VERSIONS = (1, 6)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "throttle_time_ms int32 1+ ignorable",
        "responses []DeletableTopicResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses: list[DeletableTopicResult] = [] if responses is FRESH else responses
