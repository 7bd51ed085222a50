"""ShareGroupHeartbeatRequest and ShareGroupHeartbeatResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ShareGroupHeartbeatRequest(Message):
    """Share group heartbeat request, version 1, flexible from 0."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "rack_id",
        "subscribed_topic_names",
    )
    VERSIONS = (1, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_id string 0+",
        "member_id string 0+",
        "member_epoch int32 0+",
        "rack_id string 0+ nullable=0+ default=null",
        "subscribed_topic_names []string 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names


class TopicPartitions(Message):
    """Part of ShareGroupHeartbeatResponse."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (1, 1)
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


class Assignment(Message):
    """Part of ShareGroupHeartbeatResponse."""

    __slots__ = (
        "topic_partitions",
    )
    VERSIONS = (1, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_partitions []TopicPartitions 0+",
    )

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] = FRESH,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is FRESH else topic_partitions


class ShareGroupHeartbeatResponse(Message):
    """Share group heartbeat response, version 1, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    VERSIONS = (1, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "member_id string 0+ nullable=0+ default=null",
        "member_epoch int32 0+",
        "heartbeat_interval_ms int32 0+",
        "assignment Assignment 0+ nullable=0+ default=null",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
