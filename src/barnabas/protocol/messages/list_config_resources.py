"""ListConfigResourcesRequest and ListConfigResourcesResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ListConfigResourcesRequest(Message):
    """List config resources request, versions 0-1, flexible from 0."""

    __slots__ = (
        "resource_types",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "resource_types []int8 1+",
    )

    def __init__(
        self,
        *,
        resource_types: list[int] = FRESH,
    ) -> None:
        self.resource_types: list[int] = [] if resource_types is FRESH else resource_types


class ConfigResource(Message):
    """Part of ListConfigResourcesResponse."""

    __slots__ = (
        "resource_name",
        "resource_type",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "resource_name string 0+",
        "resource_type int8 1+ default=16 ignorable",
    )

    def __init__(
        self,
        *,
        resource_name: str = "",
        resource_type: int = 16,
    ) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type


class ListConfigResourcesResponse(Message):
    """List config resources response, versions 0-1, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "config_resources",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "config_resources []ConfigResource 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources: list[ConfigResource] = [] if config_resources is FRESH else config_resources
