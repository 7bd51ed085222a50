"""PushTelemetryRequest and PushTelemetryResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class PushTelemetryRequest(Message):
    """Push telemetry request, version 0, flexible from 0."""

    __slots__ = (
        "client_instance_id",
        "subscription_id",
        "terminating",
        "compression_type",
        "metrics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "client_instance_id uuid 0+",
        "subscription_id int32 0+",
        "terminating bool 0+",
        "compression_type int8 0+",
        "metrics bytes 0+",
    )

    def __init__(
        self,
        *,
        client_instance_id: bytes = bytes(16),
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics


class PushTelemetryResponse(Message):
    """Push telemetry response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
