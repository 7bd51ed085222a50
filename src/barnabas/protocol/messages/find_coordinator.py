"""FindCoordinatorRequest and FindCoordinatorResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class FindCoordinatorRequest(Message):
    """Find coordinator request, versions 0-6, flexible from 3."""

    __slots__ = (
        "key",
        "key_type",
        "coordinator_keys",
    )
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "key string 0-3",
        "key_type int8 1+",
        "coordinator_keys []string 4+",
    )

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = FRESH,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys: list[str] = [] if coordinator_keys is FRESH else coordinator_keys


class Coordinator(Message):
    """Part of FindCoordinatorResponse."""

    __slots__ = (
        "key",
        "node_id",
        "host",
        "port",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "key string 4+",
        "node_id int32 4+",
        "host string 4+",
        "port int32 4+",
        "error_code int16 4+",
        "error_message string 4+ nullable=4+ ignorable",
    )

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponse(Message):
    """Find coordinator response, versions 0-6, flexible from 3."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "node_id",
        "host",
        "port",
        "coordinators",
    )
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "throttle_time_ms int32 1+ ignorable",
        "error_code int16 0-3",
        "error_message string 1-3 nullable=1-3 ignorable",
        "node_id int32 0-3",
        "host string 0-3",
        "port int32 0-3",
        "coordinators []Coordinator 4+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators: list[Coordinator] = [] if coordinators is FRESH else coordinators
