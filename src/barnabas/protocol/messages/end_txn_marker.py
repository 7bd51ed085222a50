"""EndTxnMarker."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class EndTxnMarker(Message):
    """End txn marker, version 0, never flexible."""

    __slots__ = (
        "coordinator_epoch",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "coordinator_epoch int32 0+",
    )

    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
