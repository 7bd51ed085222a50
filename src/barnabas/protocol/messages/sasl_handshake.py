"""SaslHandshakeRequest and SaslHandshakeResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class SaslHandshakeRequest(Message):
    """Sasl handshake request, versions 0-1, never flexible."""

    __slots__ = (
        "mechanism",
    )
    VERSIONS = (0, 1)
    FIELDS = (
        "mechanism string 0+",
    )

    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism


class SaslHandshakeResponse(Message):
    """Sasl handshake response, versions 0-1, never flexible."""

    __slots__ = (
        "error_code",
        "mechanisms",
    )
    VERSIONS = (0, 1)
    FIELDS = (
        "error_code int16 0+",
        "mechanisms []string 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.mechanisms: list[str] = [] if mechanisms is FRESH else mechanisms
