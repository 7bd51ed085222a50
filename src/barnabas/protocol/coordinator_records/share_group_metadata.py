"""ShareGroupMetadataKey and ShareGroupMetadataValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class ShareGroupMetadataKey(Message):
    """Share group metadata key, version 0, never flexible."""

    __slots__ = (
        "group_id",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "group_id string 0",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


class ShareGroupMetadataValue(Message):
    """Share group metadata value, version 0, flexible from 0."""

    __slots__ = (
        "epoch",
        "metadata_hash",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "epoch int32 0+",
        "metadata_hash int64 0+",
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
