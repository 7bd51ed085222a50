"""The transaction of a task attempt, with the offset that marks the attempt as committed.

An attempt first initializes its transactional id, which aborts an open transaction of an earlier
producer of that id. The driver ends the transaction, once Spark reports that every task is done. A
task cannot know by itself that it has read all its rows: when its JVM dies, its input just ends.

The transaction of a task also commits an offset, its marker: the number of the next batch, in a
group named after the task. Rows and marker become visible together, so the marker says whether the
rows of a task are in the topics even after its transactional id was used again.
"""

import time
from collections.abc import Iterable

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
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
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
from barnabas.spark.exactly_once.fingerprint import Fingerprint
from barnabas.spark.exactly_once.job_record import Ticket
from barnabas.spark.sink.batch_sending import FENCED, FENCED_REMEDY, DeliveryError
from barnabas.spark.sink.record_encoding import Producer
from barnabas.spark.sink.sink_cluster import Cluster
from barnabas.wire.cluster_wire import Kind, require

NOTHING_WRITTEN = 0
ONGOING = "Ongoing"


class OvertakenError(DeliveryError):
    """Another attempt has initialized the same transactional id."""


class Transaction:
    """The transaction of one task."""

    def __init__(
        self, cluster: Cluster, transactional_id: str, timeout_ms: int, patience_ms: int
    ) -> None:
        """Take the transaction timeout, and how long to ask a coordinator that does not answer."""
        self._cluster = cluster
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._patience_s = patience_ms / 1000
        self._partitions: set[tuple[str, int]] = set()
        self.producer = Producer(-1, -1, transactional=True)

    def ticket(self, task: int, written: Fingerprint) -> Ticket:
        """Return the report with which the driver can end it, given the content."""
        producer = self.producer
        return Ticket(self._id, producer.producer_id, producer.producer_epoch, task, written)

    def fence(self) -> None:
        """Get a producer id; fence earlier producers, and abort their open transactions."""
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

    def add(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Add partitions to the transaction that are not part of it yet."""
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

    def mark(self, group_id: str, topic: str, offset: int, metadata: str) -> None:
        """Commit an offset of a group inside the transaction."""
        group = AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            group_id=group_id,
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
            (Kind.GROUP, group_id),
            self._offset_request(group_id, topic, offset, metadata),
            TxnOffsetCommitResponse,
            _first_offset_code,
            self._deadline_s,
        )
        self._require(_first_offset_code(committed))

    def _offset_request(
        self, group_id: str, topic: str, offset: int, metadata: str
    ) -> TxnOffsetCommitRequest:
        place = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        return TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[place])],
        )

    def _require(self, code: int) -> None:
        if code in FENCED:
            raise OvertakenError(f"{self._id}: {ErrorCode(code).name}: {FENCED_REMEDY}")
        require(code, f"Transaction {self._id}")

    @property
    def _deadline_s(self) -> float:
        return time.monotonic() + self._patience_s


def end(cluster: Cluster, ticket: Ticket, patience_ms: int, *, commit: bool) -> int:
    """End a transaction; return the error code, which is none if it had ended so before."""
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


def marker(cluster: Cluster, group_id: str, patience_ms: int) -> int:
    """Return the marker of a task: the batches below it are written.

    Markers of open transactions are ignored.
    """
    request = OffsetFetchRequest(group_id=group_id, topics=None)
    deadline_s = time.monotonic() + patience_ms / 1000
    answer = cluster.ask(
        (Kind.GROUP, group_id), request, OffsetFetchResponse, fetched_code, deadline_s
    )
    require(fetched_code(answer), f"The marker of {group_id}")
    found = [part.committed_offset for each in answer.topics for part in each.partitions]
    return max(found, default=NOTHING_WRITTEN)


def is_open(cluster: Cluster, ticket: Ticket, patience_ms: int) -> bool:
    """Return whether a transaction can still be committed."""
    request = DescribeTransactionsRequest(transactional_ids=[ticket.transactional_id])
    answer = cluster.ask(
        (Kind.TRANSACTION, ticket.transactional_id),
        request,
        DescribeTransactionsResponse,
        lambda answer: answer.transaction_states[0].error_code,
        time.monotonic() + patience_ms / 1000,
    )
    (state,) = answer.transaction_states
    return (state.transaction_state, state.producer_id, state.producer_epoch) == (
        ONGOING,
        ticket.producer_id,
        ticket.producer_epoch,
    )


def delete_group(cluster: Cluster, group_id: str, patience_ms: int) -> None:
    """Delete the offsets of a completed job that will never run again."""
    cluster.ask(
        (Kind.GROUP, group_id),
        DeleteGroupsRequest(groups_names=[group_id]),
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
    # One that was not attempted has no reason; another error of the same answer has it.
    telling = [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED]
    return next((code for code in telling if code != ErrorCode.NONE), ErrorCode.NONE)


def _first_offset_code(answer: TxnOffsetCommitResponse) -> int:
    codes = [part.error_code for topic in answer.topics for part in topic.partitions]
    return next((code for code in codes if code != ErrorCode.NONE), ErrorCode.NONE)


def fetched_code(answer: OffsetFetchResponse) -> int:
    """Return the first error of an answer."""
    codes = [answer.error_code]
    codes += [part.error_code for topic in answer.topics for part in topic.partitions]
    return next((code for code in codes if code != ErrorCode.NONE), ErrorCode.NONE)
