"""TxnOffsetCommitRequest and TxnOffsetCommitResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class TxnOffsetCommitRequestPartition(Message):
    """Part of TxnOffsetCommitRequest."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "committed_metadata",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "partition_index int32 0+",
        "committed_offset int64 0+",
        "committed_leader_epoch int32 2+ default=-1 ignorable",
        "committed_metadata string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class TxnOffsetCommitRequestTopic(Message):
    """Part of TxnOffsetCommitRequest."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "name string 0+",
        "partitions []TxnOffsetCommitRequestPartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[TxnOffsetCommitRequestPartition] = [] if partitions is FRESH else partitions


class TxnOffsetCommitRequest(Message):
    """Txn offset commit request, versions 0-5, flexible from 3."""

    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "transactional_id string 0+",
        "group_id string 0+",
        "producer_id int64 0+",
        "producer_epoch int16 0+",
        "generation_id int32 3+ default=-1",
        "member_id string 3+",
        "group_instance_id string 3+ nullable=3+ default=null",
        "topics []TxnOffsetCommitRequestTopic 0+",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] = FRESH,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics: list[TxnOffsetCommitRequestTopic] = [] if topics is FRESH else topics


class TxnOffsetCommitResponsePartition(Message):
    """Part of TxnOffsetCommitResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TxnOffsetCommitResponseTopic(Message):
    """Part of TxnOffsetCommitResponse."""

    __slots__ = (
        "name",
        "partitions",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "name string 0+",
        "partitions []TxnOffsetCommitResponsePartition 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] = FRESH,
    ) -> None:
        self.name = name
        self.partitions: list[TxnOffsetCommitResponsePartition] = [] if partitions is FRESH else partitions


class TxnOffsetCommitResponse(Message):
    """Txn offset commit response, versions 0-5, flexible from 3."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    FIELDS = (
        "throttle_time_ms int32 0+",
        "topics []TxnOffsetCommitResponseTopic 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics: list[TxnOffsetCommitResponseTopic] = [] if topics is FRESH else topics
