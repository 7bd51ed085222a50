"""AlterClientQuotasRequest and AlterClientQuotasResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class AlterClientQuotasRequestEntityData(Message):
    """Part of AlterClientQuotasRequest."""

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


class OpData(Message):
    """Part of AlterClientQuotasRequest."""

    __slots__ = (
        "key",
        "value",
        "remove",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "key string 0+",
        "value float64 0+",
        "remove bool 0+",
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove


class AlterClientQuotasRequestEntryData(Message):
    """Part of AlterClientQuotasRequest."""

    __slots__ = (
        "entity",
        "ops",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "entity []AlterClientQuotasRequestEntityData 0+",
        "ops []OpData 0+",
    )

    def __init__(
        self,
        *,
        entity: list[AlterClientQuotasRequestEntityData] = FRESH,
        ops: list[OpData] = FRESH,
    ) -> None:
        self.entity: list[AlterClientQuotasRequestEntityData] = [] if entity is FRESH else entity
        self.ops: list[OpData] = [] if ops is FRESH else ops


class AlterClientQuotasRequest(Message):
    """Alter client quotas request, versions 0-1, flexible from 1."""

    __slots__ = (
        "entries",
        "validate_only",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "entries []AlterClientQuotasRequestEntryData 0+",
        "validate_only bool 0+",
    )

    def __init__(
        self,
        *,
        entries: list[AlterClientQuotasRequestEntryData] = FRESH,
        validate_only: bool = False,
    ) -> None:
        self.entries: list[AlterClientQuotasRequestEntryData] = [] if entries is FRESH else entries
        self.validate_only = validate_only


class AlterClientQuotasResponseEntityData(Message):
    """Part of AlterClientQuotasResponse."""

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


class AlterClientQuotasResponseEntryData(Message):
    """Part of AlterClientQuotasResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "entity",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "entity []AlterClientQuotasResponseEntityData 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[AlterClientQuotasResponseEntityData] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity: list[AlterClientQuotasResponseEntityData] = [] if entity is FRESH else entity


class AlterClientQuotasResponse(Message):
    """Alter client quotas response, versions 0-1, flexible from 1."""

    __slots__ = (
        "throttle_time_ms",
        "entries",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "throttle_time_ms int32 0+",
        "entries []AlterClientQuotasResponseEntryData 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[AlterClientQuotasResponseEntryData] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries: list[AlterClientQuotasResponseEntryData] = [] if entries is FRESH else entries
