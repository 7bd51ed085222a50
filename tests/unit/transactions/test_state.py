"""Tests records of `__transaction_state`, byte by byte where Kafka must be able to read them."""

from dataclasses import replace

import pytest

from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import CorruptBatchError
from barnabas.model.ids import TopicPartition
from barnabas.protocol.coordinator_codec import decode_transaction_record, encode
from barnabas.protocol.coordinator_records.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.transactions.state import State, Transaction, from_stored, to_record, tombstone

FULL = Transaction(
    transactional_id="t",
    producer_id=7,
    producer_epoch=32767,
    timeout_ms=60_000,
    updated_ms=1_700_000_000_001,
    state=State.PREPARE_COMMIT,
    partitions=(TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)),
    started_ms=1_700_000_000_000,
    previous_producer_id=7,
    next_producer_id=8,
    version=2,
)


def read(record: CoordinatorRecord) -> tuple[str, Transaction | None]:
    stored = decode_transaction_record(record)
    assert stored is not None
    return from_stored(stored)


@pytest.mark.parametrize("state", State)
def test_there_and_back(state: State) -> None:
    partitions = () if state is State.EMPTY else FULL.partitions
    transaction = replace(FULL, state=state, partitions=partitions)
    assert read(to_record(transaction)) == ("t", transaction)


def test_the_bytes() -> None:
    empty = Transaction(
        transactional_id="t", producer_id=1, producer_epoch=2, timeout_ms=3, updated_ms=4
    )
    key, value = to_record(empty)
    assert key == b"\0\0\0\x01t"
    assert value == bytes.fromhex(
        "0001"  # version
        "0000000000000001"  # producer id
        "0002"  # epoch
        "00000003"  # timeout
        "00"  # Empty
        "00"  # no partitions: null
        "0000000000000004"  # updated
        "ffffffffffffffff"  # started
        "00"  # no tags: absent fields have their defaults
    )


def test_a_tombstone() -> None:
    assert tombstone("t") == (b"\0\0\0\x01t", None)
    assert read(tombstone("t")) == ("t", None)


def test_version_0_is_read() -> None:
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=1,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=[PartitionsSchema(topic="a", partition_ids=[3, 4])],
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=4,
    )
    name, found = read(encode(TransactionLogKey(transactional_id="old"), value, 0))
    assert name == "old"
    assert found == Transaction(
        transactional_id="old",
        producer_id=7,
        producer_epoch=1,
        timeout_ms=60_000,
        updated_ms=5,
        state=State.ONGOING,
        partitions=(TopicPartition("a", 3), TopicPartition("a", 4)),
        started_ms=4,
    )


def test_an_unknown_state() -> None:
    value = TransactionLogValue(transaction_status=9)
    with pytest.raises(CorruptBatchError, match="in state 9"):
        read(encode(TransactionLogKey(transactional_id="t"), value, 1))


def test_names_of_states() -> None:
    assert [state.label for state in State] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
