"""EndTxnRequest and EndTxnResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class EndTxnRequest(Message):
    """End txn request, versions 0-5, flexible from 3."""

    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "committed",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "transactional_id string 0+",
        "producer_id int64 0+",
        "producer_epoch int16 0+",
        "committed bool 0+",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed


class EndTxnResponse(Message):
    """End txn response, versions 0-5, flexible from 3."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "producer_id int64 5+ default=-1 ignorable",
        "producer_epoch int16 5+ default=-1 ignorable",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
