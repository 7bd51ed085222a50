"""SnapshotFooterRecord."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class SnapshotFooterRecord(Message):
    """Snapshot footer record, version 0, flexible from 0."""

    __slots__ = (
        "version",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "version int16 0+",
    )

    def __init__(
        self,
        *,
        version: int = 0,
    ) -> None:
        self.version = version
