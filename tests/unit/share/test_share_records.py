"""Tests records of `__share_group_state` byte by byte, against what Kafka 4.3 writes."""

import pytest

from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import CorruptBatchError
from barnabas.model.ids import TopicId
from barnabas.model.share_state import SharePartitionKey
from barnabas.protocol.coordinator_codec import decode_share_record
from barnabas.protocol.coordinator_records.share_snapshot import ShareSnapshotValue
from barnabas.share import share_records
from barnabas.share.share_records import SharePartitionState, from_snapshot, initialized
from tests.support.talk.share_talk import runs, update

KEY = SharePartitionKey("workers", TopicId(bytes(range(1, 17))), 3)
NAMED = "0007776f726b6572730102030405060708090a0b0c0d0e0f1000000003"
SNAPSHOT_KEY, UPDATE_KEY = bytes.fromhex("0000" + NAMED), bytes.fromhex("0001" + NAMED)
SNAPSHOT = bytes.fromhex(
    "0000000000020000000400000005000000000000000700"
    "00018bcfe568000000018bcfe5680103"
    "0000000000000007000000000000000900000200"
    "000000000000000a000000000000000f02000100"
    "01000400000006"
)
UNINITIALIZED = bytes.fromhex(
    "0000000000000000000000000000ffffffffffffffff000000000000000100000000000000010100"
)
UPDATE = bytes.fromhex(
    "00000000000200000005ffffffffffffffff02000000000000001400000000000000140400050001000400000003"
)
NOW_MS = 1_700_000_000_000


def state() -> SharePartitionState:
    return SharePartitionState(
        snapshot_epoch=2,
        state_epoch=4,
        leader_epoch=5,
        start_offset=7,
        complete_count=6,
        created_ms=NOW_MS,
        written_ms=NOW_MS + 1,
        batches=runs("7-9 a2, 10-15 k1"),
    )


def snapshot_in(content: bytes) -> SharePartitionState:
    stored = decode_share_record(CoordinatorRecord(SNAPSHOT_KEY, content))
    assert stored is not None
    assert isinstance(stored.value, ShareSnapshotValue)
    return from_snapshot(stored.value)


def test_a_snapshot() -> None:
    assert share_records.snapshot_record(KEY, state()) == (SNAPSHOT_KEY, SNAPSHOT)
    assert snapshot_in(SNAPSHOT) == state()


def test_a_state_without_a_start_offset() -> None:
    fresh = initialized(None, 0, -1, 1)
    assert share_records.snapshot_record(KEY, fresh) == (SNAPSHOT_KEY, UNINITIALIZED)
    assert snapshot_in(UNINITIALIZED) == fresh


def test_an_update() -> None:
    change = update("20 x5", leader_epoch=5, count=3)
    assert share_records.update_record(KEY, state(), change) == (UPDATE_KEY, UPDATE)


def test_a_tombstone() -> None:
    assert share_records.tombstone(KEY) == (SNAPSHOT_KEY, None)


def test_a_state_that_does_not_exist_is_damage() -> None:
    unheard_of = SNAPSHOT.replace(bytes.fromhex("0f0200"), bytes.fromhex("0f0900"))
    with pytest.raises(CorruptBatchError):
        snapshot_in(unheard_of)
