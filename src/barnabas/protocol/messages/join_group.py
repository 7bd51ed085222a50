"""JoinGroupRequest and JoinGroupResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class JoinGroupRequestProtocol(Message):
    """Part of JoinGroupRequest."""

    __slots__ = (
        "name",
        "metadata",
    )
    VERSIONS = (0, 9)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "name string 0+",
        "metadata bytes 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class JoinGroupRequest(Message):
    """Join group request, versions 0-9, flexible from 6."""

    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )
    VERSIONS = (0, 9)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "group_id string 0+",
        "session_timeout_ms int32 0+",
        "rebalance_timeout_ms int32 1+ default=-1 ignorable",
        "member_id string 0+",
        "group_instance_id string 5+ nullable=5+ default=null",
        "protocol_type string 0+",
        "protocols []JoinGroupRequestProtocol 0+",
        "reason string 8+ nullable=8+ default=null ignorable",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = FRESH,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols: list[JoinGroupRequestProtocol] = [] if protocols is FRESH else protocols
        self.reason = reason


class JoinGroupResponseMember(Message):
    """Part of JoinGroupResponse."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "metadata",
    )
    VERSIONS = (0, 9)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "member_id string 0+",
        "group_instance_id string 5+ nullable=5+ default=null ignorable",
        "metadata bytes 0+",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


class JoinGroupResponse(Message):
    """Join group response, versions 0-9, flexible from 6."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )
    VERSIONS = (0, 9)
    FLEXIBLE_FROM = 6
    FIELDS = (
        "throttle_time_ms int32 2+ ignorable",
        "error_code int16 0+",
        "generation_id int32 0+ default=-1",
        "protocol_type string 7+ nullable=7+ default=null ignorable",
        "protocol_name string 0+ nullable=7+",
        "leader string 0+",
        "skip_assignment bool 9+",
        "member_id string 0+",
        "members []JoinGroupResponseMember 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members: list[JoinGroupResponseMember] = [] if members is FRESH else members
