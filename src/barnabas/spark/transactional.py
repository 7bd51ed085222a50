"""One transaction a task, and the marker in it that says which batch it wrote.

A task asks for its transactional id first. That fences every earlier attempt of the same task and
aborts what it left open, so that what is read next cannot change any more: the marker, an offset
committed in a group named after the transactional id. It says up to which batch this task's rows
are in the topics. A batch that it covers is not written again.

The marker for a new batch is committed inside the transaction of its rows: both become visible
together, or neither does. The driver ends the transaction, once Spark says that every task is done.
A task cannot know by itself that it has seen all its rows: when the JVM beside it dies, its input
merely ends.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from barnabas.spark.cluster import Cluster
from barnabas.spark.encoding import Producer
from barnabas.spark.sending import FENCED, FENCED_REMEDY, DeliveryError
from barnabas.wire.cluster import Kind, require

MARKER_NOTE = "rows of a Spark sink up to this batch"
NOTHING_WRITTEN = 0


@dataclass(frozen=True, slots=True)
class Ticket:
    """All that it takes to end a transaction, wherever it was begun."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Transaction:
    """The transaction of one task."""

    def __init__(
        self, cluster: Cluster, transactional_id: str, timeout_ms: int, patience_ms: int
    ) -> None:
        """Take how long it may last, and how long to ask a coordinator that does not answer."""
        self._cluster = cluster
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._patience_s = patience_ms / 1000
        self._partitions: set[tuple[str, int]] = set()
        self.producer = Producer(-1, -1, transactional=True)

    @property
    def ticket(self) -> Ticket:
        """What the driver needs to end it."""
        return Ticket(self._id, self.producer.producer_id, self.producer.producer_epoch)

    def begin(self) -> int:
        """Fence earlier attempts; return the marker: the batches below it are written."""
        answer = self._cluster.ask(
            (Kind.TRANSACTION, self._id),
            InitProducerIdRequest(
                transactional_id=self._id, transaction_timeout_ms=self._timeout_ms
            ),
            InitProducerIdResponse,
            lambda answer: answer.error_code,
            self._deadline_s,
        )
        if answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise DeliveryError(
                f"The broker allows no transaction of {self._timeout_ms} ms; lower the option "
                "kafka.transaction.timeout.ms to its transaction.max.timeout.ms"
            )
        require(answer.error_code, f"Producer id of {self._id}")
        self.producer = Producer(answer.producer_id, answer.producer_epoch, transactional=True)
        return self._marker()

    def add(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Make partitions part of the transaction, those that are not yet."""
        new = set(partitions) - self._partitions
        if not new:
            return
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(new):
            topics.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in topics.items()
            ],
        )
        answer = self._cluster.ask(
            (Kind.TRANSACTION, self._id),
            request,
            AddPartitionsToTxnResponse,
            _first_partition_code,
            self._deadline_s,
        )
        self._require(_first_partition_code(answer))
        self._partitions |= new

    def mark(self, topic: str, marker: int) -> None:
        """Say inside the transaction which batches are written once it commits."""
        group = AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            group_id=self._id,
        )
        answer = self._cluster.ask(
            (Kind.TRANSACTION, self._id),
            group,
            AddOffsetsToTxnResponse,
            lambda answer: answer.error_code,
            self._deadline_s,
        )
        self._require(answer.error_code)
        committed = self._cluster.ask(
            (Kind.GROUP, self._id),
            self._marker_request(topic, marker),
            TxnOffsetCommitResponse,
            _first_offset_code,
            self._deadline_s,
        )
        self._require(_first_offset_code(committed))

    def _marker_request(self, topic: str, marker: int) -> TxnOffsetCommitRequest:
        place = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=marker, committed_metadata=MARKER_NOTE
        )
        return TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=self._id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[place])],
        )

    def _marker(self) -> int:
        request = OffsetFetchRequest(group_id=self._id, topics=None, require_stable=True)
        answer = self._cluster.ask(
            (Kind.GROUP, self._id), request, OffsetFetchResponse, _fetched_code, self._deadline_s
        )
        require(_fetched_code(answer), f"The marker of {self._id}")
        found = [part.committed_offset for each in answer.topics for part in each.partitions]
        return max(found, default=NOTHING_WRITTEN)

    def _require(self, code: int) -> None:
        if code in FENCED:
            raise DeliveryError(f"{self._id}: {ErrorCode(code).name}: {FENCED_REMEDY}")
        require(code, f"Transaction {self._id}")

    @property
    def _deadline_s(self) -> float:
        return time.monotonic() + self._patience_s


def end(cluster: Cluster, ticket: Ticket, patience_ms: int, *, commit: bool) -> int:
    """End a transaction; return the error code, which is none where it had ended so before."""
    answer = cluster.ask(
        (Kind.TRANSACTION, ticket.transactional_id),
        EndTxnRequest(
            transactional_id=ticket.transactional_id,
            producer_id=ticket.producer_id,
            producer_epoch=ticket.producer_epoch,
            committed=commit,
        ),
        EndTxnResponse,
        lambda answer: answer.error_code,
        time.monotonic() + patience_ms / 1000,
    )
    return answer.error_code


def delete_marker(cluster: Cluster, transactional_id: str, patience_ms: int) -> None:
    """Forget the marker of a job that is done and will never run again."""
    cluster.ask(
        (Kind.GROUP, transactional_id),
        DeleteGroupsRequest(groups_names=[transactional_id]),
        DeleteGroupsResponse,
        lambda answer: answer.results[0].error_code,
        time.monotonic() + patience_ms / 1000,
    )


def _first_partition_code(answer: AddPartitionsToTxnResponse) -> int:
    codes = [
        part.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for part in topic.results_by_partition
    ]
    # One that was not attempted says nothing; another one of the same answer says why.
    telling = [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED]
    return next((code for code in telling if code != ErrorCode.NONE), ErrorCode.NONE)


def _first_offset_code(answer: TxnOffsetCommitResponse) -> int:
    codes = [part.error_code for topic in answer.topics for part in topic.partitions]
    return next((code for code in codes if code != ErrorCode.NONE), ErrorCode.NONE)


def _fetched_code(answer: OffsetFetchResponse) -> int:
    codes = [answer.error_code]
    codes += [part.error_code for topic in answer.topics for part in topic.partitions]
    return next((code for code in codes if code != ErrorCode.NONE), ErrorCode.NONE)
