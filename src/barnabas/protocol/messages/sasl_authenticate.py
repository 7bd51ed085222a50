"""SaslAuthenticateRequest and SaslAuthenticateResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class SaslAuthenticateRequest(Message):
    """Sasl authenticate request, versions 0-2, flexible from 2."""

    __slots__ = (
        "auth_bytes",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "auth_bytes bytes 0+",
    )

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes = auth_bytes


class SaslAuthenticateResponse(Message):
    """Sasl authenticate response, versions 0-2, flexible from 2."""

    __slots__ = (
        "error_code",
        "error_message",
        "auth_bytes",
        "session_lifetime_ms",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "auth_bytes bytes 0+",
        "session_lifetime_ms int64 1+ ignorable",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
