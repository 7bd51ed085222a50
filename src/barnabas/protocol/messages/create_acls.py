"""CreateAclsRequest and CreateAclsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class AclCreation(Message):
    """Part of CreateAclsRequest."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "resource_type int8 0+",
        "resource_name string 0+",
        "resource_pattern_type int8 1+ default=3",
        "principal string 0+",
        "host string 0+",
        "operation int8 0+",
        "permission_type int8 0+",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class CreateAclsRequest(Message):
    """Create acls request, versions 1-3, flexible from 2."""

    __slots__ = (
        "creations",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "creations []AclCreation 0+",
    )

    def __init__(
        self,
        *,
        creations: list[AclCreation] = FRESH,
    ) -> None:
        self.creations: list[AclCreation] = [] if creations is FRESH else creations


class AclCreationResult(Message):
    """Part of CreateAclsResponse."""

    __slots__ = (
        "error_code",
        "error_message",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message


class CreateAclsResponse(Message):
    """Create acls response, versions 1-3, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+",
        "results []AclCreationResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[AclCreationResult] = [] if results is FRESH else results
