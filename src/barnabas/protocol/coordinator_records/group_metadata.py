"""GroupMetadataKey and GroupMetadataValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class GroupMetadataKey(Message):
    """Group metadata key, version 0, never flexible."""

    __slots__ = (
        "group",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "group string 0",
    )

    def __init__(
        self,
        *,
        group: str = "",
    ) -> None:
        self.group = group


class MemberMetadata(Message):
    """Part of GroupMetadataValue."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "rebalance_timeout",
        "session_timeout",
        "subscription",
        "assignment",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "member_id string 0+",
        "group_instance_id string 3+ nullable=3+ default=null ignorable",
        "client_id string 0+",
        "client_host string 0+",
        "rebalance_timeout int32 1+ default=-1 ignorable",
        "session_timeout int32 0+",
        "subscription bytes 0+",
        "assignment bytes 0+",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment


class GroupMetadataValue(Message):
    """Group metadata value, versions 0-4, flexible from 4."""

    __slots__ = (
        "protocol_type",
        "generation",
        "protocol",
        "leader",
        "current_state_timestamp",
        "members",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "protocol_type string 0+",
        "generation int32 0+",
        "protocol string 0+ nullable=0+",
        "leader string 0+ nullable=0+",
        "current_state_timestamp int64 2+ default=-1 ignorable",
        "members []MemberMetadata 0+",
    )

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] = FRESH,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members: list[MemberMetadata] = [] if members is FRESH else members
