"""ResponseHeader."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class ResponseHeader(Message):
    """Response header, versions 0-1, flexible from 1."""

    __slots__ = (
        "correlation_id",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "correlation_id int32 0+",
    )

    def __init__(
        self,
        *,
        correlation_id: int = 0,
    ) -> None:
        self.correlation_id = correlation_id
