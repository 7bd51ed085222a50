"""DeleteShareGroupOffsetsRequest and DeleteShareGroupOffsetsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DeleteShareGroupOffsetsRequestTopic(Message):
    """Part of DeleteShareGroupOffsetsRequest."""

    __slots__ = (
        "topic_name",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name


class DeleteShareGroupOffsetsRequest(Message):
    """Delete share group offsets request, version 0, flexible from 0."""

    __slots__ = (
        "group_id",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "topics []DeleteShareGroupOffsetsRequestTopic 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.topics: list[DeleteShareGroupOffsetsRequestTopic] = [] if topics is FRESH else topics


class DeleteShareGroupOffsetsResponseTopic(Message):
    """Part of DeleteShareGroupOffsetsResponse."""

    __slots__ = (
        "topic_name",
        "topic_id",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_name string 0+",
        "topic_id uuid 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = bytes(16),
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteShareGroupOffsetsResponse(Message):
    """Delete share group offsets response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "responses []DeleteShareGroupOffsetsResponseTopic 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses: list[DeleteShareGroupOffsetsResponseTopic] = [] if responses is FRESH else responses
