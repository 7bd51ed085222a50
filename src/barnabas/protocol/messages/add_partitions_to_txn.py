"""AddPartitionsToTxnRequest and AddPartitionsToTxnResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class AddPartitionsToTxnTopic(Message):
    """Part of AddPartitionsToTxnRequest."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "name string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class AddPartitionsToTxnTransaction(Message):
    """Part of AddPartitionsToTxnRequest."""

    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "verify_only",
        "topics",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "transactional_id string 4+",
        "producer_id int64 4+",
        "producer_epoch int16 4+",
        "verify_only bool 4+",
        "topics []AddPartitionsToTxnTopic 4+",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = FRESH,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics: list[AddPartitionsToTxnTopic] = [] if topics is FRESH else topics


class AddPartitionsToTxnRequest(Message):
    """Add partitions to txn request, versions 0-5, flexible from 3."""

    __slots__ = (
        "transactions",
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "transactions []AddPartitionsToTxnTransaction 4+",
        "v3_and_below_transactional_id string 0-3",
        "v3_and_below_producer_id int64 0-3",
        "v3_and_below_producer_epoch int16 0-3",
        "v3_and_below_topics []AddPartitionsToTxnTopic 0-3",
    )

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] = FRESH,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = FRESH,
    ) -> None:
        self.transactions: list[AddPartitionsToTxnTransaction] = [] if transactions is FRESH else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics: list[AddPartitionsToTxnTopic] = [] if v3_and_below_topics is FRESH else v3_and_below_topics


class AddPartitionsToTxnTopicResult(Message):
    """Part of AddPartitionsToTxnResponse."""

    __slots__ = (
        "name",
        "results_by_partition",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "name string 0+",
        "results_by_partition []AddPartitionsToTxnPartitionResult 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = FRESH,
    ) -> None:
        self.name = name
        self.results_by_partition: list[AddPartitionsToTxnPartitionResult] = [] if results_by_partition is FRESH else results_by_partition


class AddPartitionsToTxnPartitionResult(Message):
    """Part of AddPartitionsToTxnResponse."""

    __slots__ = (
        "partition_index",
        "partition_error_code",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "partition_index int32 0+",
        "partition_error_code int16 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


class AddPartitionsToTxnResult(Message):
    """Part of AddPartitionsToTxnResponse."""

    __slots__ = (
        "transactional_id",
        "topic_results",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "transactional_id string 4+",
        "topic_results []AddPartitionsToTxnTopicResult 4+",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] = FRESH,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results: list[AddPartitionsToTxnTopicResult] = [] if topic_results is FRESH else topic_results


class AddPartitionsToTxnResponse(Message):
    """Add partitions to txn response, versions 0-5, flexible from 3."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results_by_transaction",
        "results_by_topic_v3_and_below",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 4+ ignorable",
        "results_by_transaction []AddPartitionsToTxnResult 4+",
        "results_by_topic_v3_and_below []AddPartitionsToTxnTopicResult 0-3",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] = FRESH,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction: list[AddPartitionsToTxnResult] = [] if results_by_transaction is FRESH else results_by_transaction
        self.results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = [] if results_by_topic_v3_and_below is FRESH else results_by_topic_v3_and_below
