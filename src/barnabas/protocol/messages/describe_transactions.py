"""DescribeTransactionsRequest and DescribeTransactionsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class DescribeTransactionsRequest(Message):
    """Describe transactions request, version 0, flexible from 0."""

    __slots__ = (
        "transactional_ids",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "transactional_ids []string 0+",
    )

    def __init__(
        self,
        *,
        transactional_ids: list[str] = FRESH,
    ) -> None:
        self.transactional_ids: list[str] = [] if transactional_ids is FRESH else transactional_ids


class TopicData(Message):
    """Part of DescribeTransactionsResponse."""

    __slots__ = (
        "topic",
        "partitions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic = topic
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class TransactionState(Message):
    """Part of DescribeTransactionsResponse."""

    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "error_code int16 0+",
        "transactional_id string 0+",
        "transaction_state string 0+",
        "transaction_timeout_ms int32 0+",
        "transaction_start_time_ms int64 0+",
        "producer_id int64 0+",
        "producer_epoch int16 0+",
        "topics []TopicData 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] = FRESH,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics: list[TopicData] = [] if topics is FRESH else topics


class DescribeTransactionsResponse(Message):
    """Describe transactions response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "transaction_states",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "transaction_states []TransactionState 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states: list[TransactionState] = [] if transaction_states is FRESH else transaction_states
