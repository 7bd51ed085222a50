"""DeleteAclsRequest and DeleteAclsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DeleteAclsFilter(Message):
    """Part of DeleteAclsRequest."""

    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "resource_type_filter int8 0+",
        "resource_name_filter string 0+ nullable=0+",
        "pattern_type_filter int8 1+ default=3",
        "principal_filter string 0+ nullable=0+",
        "host_filter string 0+ nullable=0+",
        "operation int8 0+",
        "permission_type int8 0+",
    )

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsRequest(Message):
    """Delete acls request, versions 1-3, flexible from 2."""

    __slots__ = (
        "filters",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "filters []DeleteAclsFilter 0+",
    )

    def __init__(
        self,
        *,
        filters: list[DeleteAclsFilter] = FRESH,
    ) -> None:
        self.filters: list[DeleteAclsFilter] = [] if filters is FRESH else filters


class DeleteAclsMatchingAcl(Message):
    """Part of DeleteAclsResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "resource_type int8 0+",
        "resource_name string 0+",
        "pattern_type int8 1+ default=3",
        "principal string 0+",
        "host string 0+",
        "operation int8 0+",
        "permission_type int8 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsFilterResult(Message):
    """Part of DeleteAclsResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "matching_acls",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "matching_acls []DeleteAclsMatchingAcl 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls: list[DeleteAclsMatchingAcl] = [] if matching_acls is FRESH else matching_acls


class DeleteAclsResponse(Message):
    """Delete acls response, versions 1-3, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "filter_results",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+",
        "filter_results []DeleteAclsFilterResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results: list[DeleteAclsFilterResult] = [] if filter_results is FRESH else filter_results
