"""LeaveGroupRequest and LeaveGroupResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class MemberIdentity(Message):
    """Part of LeaveGroupRequest."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "reason",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "member_id string 3+",
        "group_instance_id string 3+ nullable=3+ default=null",
        "reason string 5+ nullable=5+ default=null ignorable",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequest(Message):
    """Leave group request, versions 0-5, flexible from 4."""

    __slots__ = (
        "group_id",
        "member_id",
        "members",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "group_id string 0+",
        "member_id string 0-2",
        "members []MemberIdentity 3+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] = FRESH,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members: list[MemberIdentity] = [] if members is FRESH else members


class MemberResponse(Message):
    """Part of LeaveGroupResponse."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "error_code",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "member_id string 3+",
        "group_instance_id string 3+ nullable=3+",
        "error_code int16 3+",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponse(Message):
    """Leave group response, versions 0-5, flexible from 4."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "members",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "throttle_time_ms int32 1+ ignorable",
        "error_code int16 0+",
        "members []MemberResponse 3+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members: list[MemberResponse] = [] if members is FRESH else members
