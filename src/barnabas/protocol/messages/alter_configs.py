"""AlterConfigsRequest and AlterConfigsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class AlterableConfig(Message):
    """Part of AlterConfigsRequest."""

    __slots__ = (
        "name",
        "value",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "name string 0+",
        "value string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


class AlterConfigsResource(Message):
    """Part of AlterConfigsRequest."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "configs",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "resource_type int8 0+",
        "resource_name string 0+",
        "configs []AlterableConfig 0+",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] = FRESH,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs: list[AlterableConfig] = [] if configs is FRESH else configs


class AlterConfigsRequest(Message):
    """Alter configs request, versions 0-2, flexible from 2."""

    __slots__ = (
        "resources",
        "validate_only",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "resources []AlterConfigsResource 0+",
        "validate_only bool 0+",
    )

    def __init__(
        self,
        *,
        resources: list[AlterConfigsResource] = FRESH,
        validate_only: bool = False,
    ) -> None:
        self.resources: list[AlterConfigsResource] = [] if resources is FRESH else resources
        self.validate_only = validate_only


class AlterConfigsResourceResponse(Message):
    """Part of AlterConfigsResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "resource_type int8 0+",
        "resource_name string 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


class AlterConfigsResponse(Message):
    """Alter configs response, versions 0-2, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "responses",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+",
        "responses []AlterConfigsResourceResponse 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses: list[AlterConfigsResourceResponse] = [] if responses is FRESH else responses
