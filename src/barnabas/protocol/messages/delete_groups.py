"""DeleteGroupsRequest and DeleteGroupsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DeleteGroupsRequest(Message):
    """Delete groups request, versions 0-2, flexible from 2."""

    __slots__ = (
        "groups_names",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "groups_names []string 0+",
    )

    def __init__(
        self,
        *,
        groups_names: list[str] = FRESH,
    ) -> None:
        self.groups_names: list[str] = [] if groups_names is FRESH else groups_names


class DeletableGroupResult(Message):
    """Part of DeleteGroupsResponse."""

    __slots__ = (
        "group_id",
        "error_code",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "group_id string 0+",
        "error_code int16 0+",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code


class DeleteGroupsResponse(Message):
    """Delete groups response, versions 0-2, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+",
        "results []DeletableGroupResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[DeletableGroupResult] = [] if results is FRESH else results
