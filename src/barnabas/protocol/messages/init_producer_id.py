"""InitProducerIdRequest and InitProducerIdResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class InitProducerIdRequest(Message):
    """Init producer id request, versions 0-6, flexible from 2."""

    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
    )
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "transactional_id string 0+ nullable=0+",
        "transaction_timeout_ms int32 0+",
        "producer_id int64 3+ default=-1",
        "producer_epoch int16 3+ default=-1",
        "enable2_pc bool 6+",
        "keep_prepared_txn bool 6+",
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn


class InitProducerIdResponse(Message):
    """Init producer id response, versions 0-6, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "throttle_time_ms int32 0+ ignorable",
        "error_code int16 0+",
        "producer_id int64 0+ default=-1",
        "producer_epoch int16 0+",
        "ongoing_txn_producer_id int64 6+ default=-1",
        "ongoing_txn_producer_epoch int16 6+ default=-1",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch
