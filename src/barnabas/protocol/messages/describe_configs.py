"""DescribeConfigsRequest and DescribeConfigsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DescribeConfigsResource(Message):
    """Part of DescribeConfigsRequest."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "configuration_keys",
    )
    VERSIONS = (1, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "resource_type int8 0+",
        "resource_name string 0+",
        "configuration_keys []string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = FRESH,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys: list[str] | None = [] if configuration_keys is FRESH else configuration_keys


class DescribeConfigsRequest(Message):
    """Describe configs request, versions 1-4, flexible from 4."""

    __slots__ = (
        "resources",
        "include_synonyms",
        "include_documentation",
    )
    VERSIONS = (1, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "resources []DescribeConfigsResource 0+",
        "include_synonyms bool 1+",
        "include_documentation bool 3+",
    )

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] = FRESH,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources: list[DescribeConfigsResource] = [] if resources is FRESH else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation


class DescribeConfigsSynonym(Message):
    """Part of DescribeConfigsResponse."""

    __slots__ = (
        "name",
        "value",
        "source",
    )
    VERSIONS = (1, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "name string 1+",
        "value string 1+ nullable=0+",
        "source int8 1+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(Message):
    """Part of DescribeConfigsResponse."""

    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )
    VERSIONS = (1, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "name string 0+",
        "value string 0+ nullable=0+",
        "read_only bool 0+",
        "config_source int8 1+ default=-1 ignorable",
        "is_sensitive bool 0+",
        "synonyms []DescribeConfigsSynonym 1+ ignorable",
        "config_type int8 3+ ignorable",
        "documentation string 3+ nullable=0+ ignorable",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = FRESH,
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms: list[DescribeConfigsSynonym] = [] if synonyms is FRESH else synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(Message):
    """Part of DescribeConfigsResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "configs",
    )
    VERSIONS = (1, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "resource_type int8 0+",
        "resource_name string 0+",
        "configs []DescribeConfigsResourceResult 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs: list[DescribeConfigsResourceResult] = [] if configs is FRESH else configs


class DescribeConfigsResponse(Message):
    """Describe configs response, versions 1-4, flexible from 4."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    VERSIONS = (1, 4)
    FLEXIBLE_FROM = 4
    FIELDS = (
        "throttle_time_ms int32 0+",
        "results []DescribeConfigsResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[DescribeConfigsResult] = [] if results is FRESH else results
