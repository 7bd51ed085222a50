"""ControlRecordTypeSchema."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class ControlRecordTypeSchema(Message):
    """Control record type schema, version 0, never flexible."""

    __slots__ = (
        "type",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "type int16 0+",
    )

    def __init__(
        self,
        *,
        type: int = 0,
    ) -> None:
        self.type = type
