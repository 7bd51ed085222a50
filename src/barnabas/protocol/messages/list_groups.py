"""ListGroupsRequest and ListGroupsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ListGroupsRequest(Message):
    """List groups request, versions 0-5, flexible from 3."""

    __slots__ = (
        "states_filter",
        "types_filter",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "states_filter []string 4+",
        "types_filter []string 5+",
    )

    def __init__(
        self,
        *,
        states_filter: list[str] = FRESH,
        types_filter: list[str] = FRESH,
    ) -> None:
        self.states_filter: list[str] = [] if states_filter is FRESH else states_filter
        self.types_filter: list[str] = [] if types_filter is FRESH else types_filter


class ListedGroup(Message):
    """Part of ListGroupsResponse."""

    __slots__ = (
        "group_id",
        "protocol_type",
        "group_state",
        "group_type",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "group_id string 0+",
        "protocol_type string 0+",
        "group_state string 4+ ignorable",
        "group_type string 5+ ignorable",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


class ListGroupsResponse(Message):
    """List groups response, versions 0-5, flexible from 3."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "groups",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "throttle_time_ms int32 1+ ignorable",
        "error_code int16 0+",
        "groups []ListedGroup 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups: list[ListedGroup] = [] if groups is FRESH else groups
