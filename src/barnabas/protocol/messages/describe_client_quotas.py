"""DescribeClientQuotasRequest and DescribeClientQuotasResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ComponentData(Message):
    """Part of DescribeClientQuotasRequest."""

    __slots__ = (
        "entity_type",
        "match_type",
        "match",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "entity_type string 0+",
        "match_type int8 0+",
        "match string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


class DescribeClientQuotasRequest(Message):
    """Describe client quotas request, versions 0-1, flexible from 1."""

    __slots__ = (
        "components",
        "strict",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "components []ComponentData 0+",
        "strict bool 0+",
    )

    def __init__(
        self,
        *,
        components: list[ComponentData] = FRESH,
        strict: bool = False,
    ) -> None:
        self.components: list[ComponentData] = [] if components is FRESH else components
        self.strict = strict


class EntityData(Message):
    """Part of DescribeClientQuotasResponse."""

    __slots__ = (
        "entity_type",
        "entity_name",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "entity_type string 0+",
        "entity_name string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ValueData(Message):
    """Part of DescribeClientQuotasResponse."""

    __slots__ = (
        "key",
        "value",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "key string 0+",
        "value float64 0+",
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key = key
        self.value = value


class EntryData(Message):
    """Part of DescribeClientQuotasResponse."""

    __slots__ = (
        "entity",
        "values",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "entity []EntityData 0+",
        "values []ValueData 0+",
    )

    def __init__(
        self,
        *,
        entity: list[EntityData] = FRESH,
        values: list[ValueData] = FRESH,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is FRESH else entity
        self.values: list[ValueData] = [] if values is FRESH else values


class DescribeClientQuotasResponse(Message):
    """Describe client quotas response, versions 0-1, flexible from 1."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "entries",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "entries []EntryData 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries: list[EntryData] | None = [] if entries is FRESH else entries
