"""SnapshotHeaderRecord."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class SnapshotHeaderRecord(Message):
    """Snapshot header record, version 0, flexible from 0."""

    __slots__ = (
        "version",
        "last_contained_log_timestamp",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "version int16 0+",
        "last_contained_log_timestamp int64 0+",
    )

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
    ) -> None:
        self.version = version
        self.last_contained_log_timestamp = last_contained_log_timestamp
