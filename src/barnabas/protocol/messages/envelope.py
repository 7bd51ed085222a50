"""EnvelopeRequest and EnvelopeResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class EnvelopeRequest(Message):
    """Envelope request, version 0, flexible from 0."""

    __slots__ = (
        "request_data",
        "request_principal",
        "client_host_address",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "request_data bytes 0+",
        "request_principal bytes 0+ nullable=0+",
        "client_host_address bytes 0+",
    )

    def __init__(
        self,
        *,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address


class EnvelopeResponse(Message):
    """Envelope response, version 0, flexible from 0."""

    __slots__ = (
        "response_data",
        "error_code",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "response_data bytes 0+ nullable=0+ default=null",
        "error_code int16 0+",
    )

    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
    ) -> None:
        self.response_data = response_data
        self.error_code = error_code
