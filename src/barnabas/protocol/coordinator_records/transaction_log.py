"""TransactionLogKey and TransactionLogValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class TransactionLogKey(Message):
    """Transaction log key, version 0, never flexible."""

    __slots__ = (
        "transactional_id",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "transactional_id string 0",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id


class PartitionsSchema(Message):
    """Part of TransactionLogValue."""

    __slots__ = (
        "topic",
        "partition_ids",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "topic string 0+",
        "partition_ids []int32 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partition_ids: list[int] = FRESH,
    ) -> None:
        self.topic = topic
        self.partition_ids: list[int] = [] if partition_ids is FRESH else partition_ids


class TransactionLogValue(Message):
    """Transaction log value, versions 0-1, flexible from 1."""

    __slots__ = (
        "producer_id",
        "previous_producer_id",
        "next_producer_id",
        "producer_epoch",
        "next_producer_epoch",
        "transaction_timeout_ms",
        "transaction_status",
        "transaction_partitions",
        "transaction_last_update_timestamp_ms",
        "transaction_start_timestamp_ms",
        "client_transaction_version",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    FIELDS = (
        "producer_id int64 0+",
        "previous_producer_id int64 1+ default=-1 tag=0 tagged=1+",
        "next_producer_id int64 1+ default=-1 tag=1 tagged=1+",
        "producer_epoch int16 0+",
        "next_producer_epoch int16 1+ default=-1 tag=3 tagged=1+",
        "transaction_timeout_ms int32 0+",
        "transaction_status int8 0+",
        "transaction_partitions []PartitionsSchema 0+ nullable=0+",
        "transaction_last_update_timestamp_ms int64 0+",
        "transaction_start_timestamp_ms int64 0+",
        "client_transaction_version int16 1+ tag=2 tagged=1+",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | None = FRESH,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions: list[PartitionsSchema] | None = [] if transaction_partitions is FRESH else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
