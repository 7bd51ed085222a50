"""BrokerRegistrationRequest and BrokerRegistrationResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class Listener(Message):
    """Part of BrokerRegistrationRequest."""

    __slots__ = (
        "name",
        "host",
        "port",
        "security_protocol",
    )
    VERSIONS = (0, 4)
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
    """Part of BrokerRegistrationRequest."""

    __slots__ = (
        "name",
        "min_supported_version",
        "max_supported_version",
    )
    VERSIONS = (0, 4)
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


class BrokerRegistrationRequest(Message):
    """Broker registration request, versions 0-4, flexible from 0."""

    __slots__ = (
        "broker_id",
        "cluster_id",
        "incarnation_id",
        "listeners",
        "features",
        "rack",
        "is_migrating_zk_broker",
        "log_dirs",
        "previous_broker_epoch",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "broker_id int32 0+",
        "cluster_id string 0+",
        "incarnation_id uuid 0+",
        "listeners []Listener 0+",
        "features []Feature 0+",
        "rack string 0+ nullable=0+",
        "is_migrating_zk_broker bool 1+",
        "log_dirs []uuid 2+ ignorable",
        "previous_broker_epoch int64 3+ default=-1 ignorable",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: bytes = bytes(16),
        listeners: list[Listener] = FRESH,
        features: list[Feature] = FRESH,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: list[bytes] = FRESH,
        previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self.listeners: list[Listener] = [] if listeners is FRESH else listeners
        self.features: list[Feature] = [] if features is FRESH else features
        self.rack = rack
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.log_dirs: list[bytes] = [] if log_dirs is FRESH else log_dirs
        self.previous_broker_epoch = previous_broker_epoch


class BrokerRegistrationResponse(Message):
    """Broker registration response, versions 0-4, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "broker_epoch",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "broker_epoch int64 0+ default=-1",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.broker_epoch = broker_epoch
