"""ExpireDelegationTokenRequest and ExpireDelegationTokenResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class ExpireDelegationTokenRequest(Message):
    """Expire delegation token request, versions 1-2, flexible from 2."""

    __slots__ = (
        "hmac",
        "expiry_time_period_ms",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "hmac bytes 0+",
        "expiry_time_period_ms int64 0+",
    )

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.expiry_time_period_ms = expiry_time_period_ms


class ExpireDelegationTokenResponse(Message):
    """Expire delegation token response, versions 1-2, flexible from 2."""

    __slots__ = (
        "error_code",
        "expiry_timestamp_ms",
        "throttle_time_ms",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "error_code int16 0+",
        "expiry_timestamp_ms int64 0+",
        "throttle_time_ms int32 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
