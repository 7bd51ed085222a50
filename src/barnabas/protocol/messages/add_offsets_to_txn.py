"""AddOffsetsToTxnRequest and AddOffsetsToTxnResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class AddOffsetsToTxnRequest(Message):
    """Add offsets to txn request, versions 0-4, flexible from 3."""

    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "group_id",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "transactional_id string 0+",
        "producer_id int64 0+",
        "producer_epoch int16 0+",
        "group_id string 0+",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id


class AddOffsetsToTxnResponse(Message):
    """Add offsets to txn response, versions 0-4, flexible from 3."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
