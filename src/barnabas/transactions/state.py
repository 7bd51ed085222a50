"""What is known of one transactional id, and the record that says so.

Records are written in version 1, whose tagged fields transaction version 2 needs (KIP-890); those
of version 0 are read as well. As in Kafka, the record does not have the epoch that the producer had
before the last raise. Only the coordinator that raised it knows that epoch.
"""

from dataclasses import dataclass
from enum import IntEnum

from barnabas.model.coordination import CoordinatorRecord, ProducerIdAndEpoch
from barnabas.model.errors import CorruptBatchError
from barnabas.model.ids import NO_PRODUCER_ID, NO_TIMESTAMP_MS, TopicPartition
from barnabas.protocol.coordinator_codec import Stored, encode
from barnabas.protocol.coordinator_records.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

RECORD_VERSION = 1


class State(IntEnum):
    """Where a transactional id stands, with Kafka's numbers."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The name that clients know."""
        return self.name.title().replace("_", "")

    @property
    def is_ending(self) -> bool:
        """Whether the outcome is decided and markers are on their way."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Whether there is no transaction."""
        return self in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


STATES = {state.label: state for state in State}


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id: its producer, and its transaction, which is open, ending or over."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    updated_ms: int
    state: State = State.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    started_ms: int = NO_TIMESTAMP_MS
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """Set while a transaction ends with which the epochs of `producer_id` are used up."""

    version: int = 0
    """The transaction version that its last request spoke: 2 raises the epoch at each end."""

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """The producer that may write now; while the transaction ends, the one in its markers."""
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def next_producer(self) -> ProducerIdAndEpoch:
        """The producer that may write once this transaction has ended."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return self.producer
        return ProducerIdAndEpoch(self.next_producer_id, 0)

    @property
    def commits(self) -> bool:
        """Whether the end that is under way, or was reached, is a commit."""
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    @property
    def by_topic(self) -> dict[str, list[int]]:
        """The partitions, gathered by topic."""
        gathered: dict[str, list[int]] = {}
        for topic, partition in self.partitions:
            gathered.setdefault(topic, []).append(partition)
        return gathered


def to_record(transaction: Transaction) -> CoordinatorRecord:
    """Return what is stored for a transactional id."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        # Kafka writes null in states that have no partitions.
        transaction_partitions=None
        if transaction.state is State.EMPTY
        else [
            PartitionsSchema(topic=topic, partition_ids=partitions)
            for topic, partitions in transaction.by_topic.items()
        ],
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
    )
    return encode(_key(transaction.transactional_id), value, RECORD_VERSION)


def tombstone(transactional_id: str) -> CoordinatorRecord:
    """Return the record that deletes a transactional id."""
    return encode(_key(transactional_id), None)


def from_stored(stored: Stored) -> tuple[str, Transaction | None]:
    """Read what `to_record` and `tombstone` write; raise if the record is invalid."""
    key, value = stored
    assert isinstance(key, TransactionLogKey)
    if value is None:
        return key.transactional_id, None
    assert isinstance(value, TransactionLogValue)
    try:
        state = State(value.transaction_status)
    except ValueError as error:
        raise CorruptBatchError(f"a transaction is in state {value.transaction_status}") from error
    return key.transactional_id, Transaction(
        transactional_id=key.transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        state=state,
        partitions=tuple(
            TopicPartition(listed.topic, partition)
            for listed in value.transaction_partitions or ()
            for partition in listed.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        version=value.client_transaction_version,
    )


def _key(transactional_id: str) -> TransactionLogKey:
    return TransactionLogKey(transactional_id=transactional_id)
