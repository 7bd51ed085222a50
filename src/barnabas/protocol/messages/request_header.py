"""RequestHeader."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class RequestHeader(Message):
    """Request header, versions 1-2, flexible from 2."""

    __slots__ = (
        "request_api_key",
        "request_api_version",
        "correlation_id",
        "client_id",
    )
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "request_api_key int16 0+",
        "request_api_version int16 0+",
        "correlation_id int32 0+",
        "client_id string 1+ nullable=1+ flexible=none",
    )

    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
