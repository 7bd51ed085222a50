"""HeartbeatRequest and HeartbeatResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class HeartbeatRequest(Message):
    """Heartbeat request, versions 0-4, flexible from 4."""

    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "group_id string 0+",
        "generation_id int32 0+",
        "member_id string 0+",
        "group_instance_id string 3+ nullable=3+ default=null",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id


class HeartbeatResponse(Message):
    """Heartbeat response, versions 0-4, flexible from 4."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "throttle_time_ms int32 1+ ignorable",
        "error_code int16 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
