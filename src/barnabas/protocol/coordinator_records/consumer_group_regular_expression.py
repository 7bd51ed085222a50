"""ConsumerGroupRegularExpressionKey and ConsumerGroupRegularExpressionValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ConsumerGroupRegularExpressionKey(Message):
    """Consumer group regular expression key, version 0, never flexible."""

    __slots__ = (
        "group_id",
        "regular_expression",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "group_id string 0",
        "regular_expression string 0",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression


class ConsumerGroupRegularExpressionValue(Message):
    """Consumer group regular expression value, version 0, flexible from 0."""

    __slots__ = (
        "topics",
        "version",
        "timestamp",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topics []string 0+",
        "version int64 0+",
        "timestamp int64 0+",
    )

    def __init__(
        self,
        *,
        topics: list[str] = FRESH,
        version: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.topics: list[str] = [] if topics is FRESH else topics
        self.version = version
        self.timestamp = timestamp
