"""ControllerRegistrationRequest and ControllerRegistrationResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class Listener(Message):
    """Part of ControllerRegistrationRequest."""

    __slots__ = (
        "name",
        "host",
        "port",
        "security_protocol",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "host string 0+",
        "port uint16 0+",
        "security_protocol int16 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol


class Feature(Message):
    """Part of ControllerRegistrationRequest."""

    __slots__ = (
        "name",
        "min_supported_version",
        "max_supported_version",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "min_supported_version int16 0+",
        "max_supported_version int16 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class ControllerRegistrationRequest(Message):
    """Controller registration request, version 0, flexible from 0."""

    __slots__ = (
        "controller_id",
        "incarnation_id",
        "zk_migration_ready",
        "listeners",
        "features",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "controller_id int32 0+",
        "incarnation_id uuid 0+",
        "zk_migration_ready bool 0+",
        "listeners []Listener 0+",
        "features []Feature 0+",
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = bytes(16),
        zk_migration_ready: bool = False,
        listeners: list[Listener] = FRESH,
        features: list[Feature] = FRESH,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.listeners: list[Listener] = [] if listeners is FRESH else listeners
        self.features: list[Feature] = [] if features is FRESH else features


class ControllerRegistrationResponse(Message):
    """Controller registration response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
