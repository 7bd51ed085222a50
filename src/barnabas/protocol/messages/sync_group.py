"""SyncGroupRequest and SyncGroupResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class SyncGroupRequestAssignment(Message):
    """Part of SyncGroupRequest."""

    __slots__ = (
        "member_id",
        "assignment",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "member_id string 0+",
        "assignment bytes 0+",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment


class SyncGroupRequest(Message):
    """Sync group request, versions 0-5, flexible from 4."""

    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "group_id string 0+",
        "generation_id int32 0+",
        "member_id string 0+",
        "group_instance_id string 3+ nullable=3+ default=null",
        "protocol_type string 5+ nullable=5+ default=null ignorable",
        "protocol_name string 5+ nullable=5+ default=null ignorable",
        "assignments []SyncGroupRequestAssignment 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments: list[SyncGroupRequestAssignment] = [] if assignments is FRESH else assignments


class SyncGroupResponse(Message):
    """Sync group response, versions 0-5, flexible from 4."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "protocol_type",
        "protocol_name",
        "assignment",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "throttle_time_ms int32 1+ ignorable",
        "error_code int16 0+",
        "protocol_type string 5+ nullable=5+ default=null ignorable",
        "protocol_name string 5+ nullable=5+ default=null ignorable",
        "assignment bytes 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
