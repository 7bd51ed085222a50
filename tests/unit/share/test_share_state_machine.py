"""Tests the share coordinator in dialogues: what is stored, and who is fenced."""

import pytest

from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.settings import ShareSettings
from barnabas.model.share_state import SharePartitionKey, Shipment, StateSummary, StoredState
from barnabas.protocol.coordinator_codec import decode_share_record
from barnabas.protocol.coordinator_records.share_snapshot import ShareSnapshotValue
from barnabas.protocol.coordinator_records.share_update import ShareUpdateValue
from tests.support.talk.share_talk import GROUP, KEY, TOPIC, ShareTalk, update

OTHER = SharePartitionKey(GROUP, TOPIC, 1)
NOWHERE = SharePartitionKey(GROUP, TopicId(bytes([9] * 16)), 0)
INVALID, OK = ErrorCode.INVALID_REQUEST, ErrorCode.NONE
UNKNOWN_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def talk() -> ShareTalk:
    return ShareTalk()


def kinds(records: list[CoordinatorRecord]) -> str:
    """Return what was stored: s for a snapshot, u for an update, t for a tombstone."""
    found = []
    for record in records:
        stored = decode_share_record(record)
        assert stored is not None
        is_snapshot = isinstance(stored.value, ShareSnapshotValue)
        found.append("t" if stored.value is None else "s" if is_snapshot else "u")
    return "".join(found)


class TestInitialize:
    def test_a_share_partition_begins_at_an_offset(self, talk: ShareTalk) -> None:
        assert talk.initialize(100) is OK
        assert talk.state() == (0, 100, "")
        assert talk.summary() == StateSummary(0, 0, 100, 0)

    def test_or_wherever_the_config_of_the_group_says(self, talk: ShareTalk) -> None:
        assert talk.initialize(-1, state_epoch=3) is OK
        assert talk.state() == (3, -1, "")
        assert talk.summary() == StateSummary(3, 0, -1, -1)

    def test_again_it_forgets_the_state(self, talk: ShareTalk) -> None:
        talk.initialize()
        talk.write("0-4 k1", leader_epoch=5)
        assert talk.initialize(50, state_epoch=1) is OK
        assert talk.state() == (1, 50, "")

    def test_earlier_leaders_remain_fenced(self, talk: ShareTalk) -> None:
        talk.initialize()
        talk.read(5)
        talk.initialize(50, state_epoch=1)
        assert talk.write("60 k1", leader_epoch=4, state_epoch=1) is ErrorCode.FENCED_LEADER_EPOCH

    def test_a_lower_state_epoch_is_fenced(self, talk: ShareTalk) -> None:
        talk.initialize(state_epoch=2)
        assert talk.initialize(9, state_epoch=1) is ErrorCode.FENCED_STATE_EPOCH
        assert talk.initialize(9, state_epoch=2) is OK

    def test_topics_and_partitions_must_exist(self, talk: ShareTalk) -> None:
        assert talk.initialize(key=NOWHERE) is UNKNOWN_TOPIC
        assert talk.initialize(key=KEY._replace(partition=3)) is UNKNOWN_TOPIC
        assert talk.initialize(key=KEY._replace(partition=-1)) is INVALID
        assert talk.initialize(-2) is INVALID


class TestRead:
    def test_a_leader_gets_the_state_and_fences_those_before_it(self, talk: ShareTalk) -> None:
        talk.initialize()
        talk.write("0-4 k1, 7 a2", leader_epoch=3)
        found = talk.read(5)
        assert isinstance(found, StoredState)
        assert len(found.batches) == 2
        assert talk.read(4) is ErrorCode.FENCED_LEADER_EPOCH
        assert talk.read(-1) is ErrorCode.FENCED_LEADER_EPOCH
        assert talk.write("9 k1", leader_epoch=4) is ErrorCode.FENCED_LEADER_EPOCH
        assert talk.write("9 k1", leader_epoch=5) is OK

    def test_only_a_newer_epoch_is_stored(self, talk: ShareTalk) -> None:
        talk.initialize()
        for epoch in (0, 1, 1):
            talk.read(epoch)
        assert kinds(talk.runner.records) == "su"

    def test_a_stored_epoch_changes_nothing_else(self, talk: ShareTalk) -> None:
        talk.initialize(3)
        talk.write("3-4 k1", start=3, count=2)
        talk.read(5)
        assert talk.summary() == StateSummary(0, 5, 3, 2)
        assert talk.state() == (0, 3, "3-4 k1")

    def test_what_is_not_initialized_cannot_be_read(self, talk: ShareTalk) -> None:
        assert talk.read(0) is INVALID


class TestWrite:
    def test_changes_apply_one_after_the_other(self, talk: ShareTalk) -> None:
        talk.initialize()
        talk.write("0-9 a1")
        talk.write("3-5 k1", start=2, count=3)
        assert talk.state() == (0, 2, "2 a1, 3-5 k1, 6-9 a1")
        assert talk.summary() == StateSummary(0, 0, 2, 3)

    def test_a_start_offset_of_minus_one_stays(self, talk: ShareTalk) -> None:
        talk.initialize(2)
        talk.write("3-5 k1")
        assert talk.state() == (0, 2, "3-5 k1")

    def test_a_write_that_was_overtaken_takes_nothing_back(self, talk: ShareTalk) -> None:
        talk.initialize()
        talk.write("0-9 a1", start=0, count=0)
        talk.write("4-5 k2", start=3, count=2)
        assert talk.write("0-9 a1", start=0, count=0) is OK  # sent again, and late
        assert talk.state() == (0, 3, "3 a1, 4-5 k2, 6-9 a1")
        assert talk.summary() == StateSummary(0, 0, 3, 2)

    def test_an_older_state_epoch_is_fenced(self, talk: ShareTalk) -> None:
        talk.initialize(state_epoch=4)
        assert talk.write("1 k1", state_epoch=3) is ErrorCode.FENCED_STATE_EPOCH
        assert talk.write("1 k1", state_epoch=4) is OK

    @pytest.mark.parametrize("text", ["5-3 a1", "0-5 a1, 5-7 k1", "0 q1", "0 a-1"])
    def test_nonsense_is_refused(self, talk: ShareTalk, text: str) -> None:
        talk.initialize()
        assert talk.write(text) is INVALID
        assert talk.state() == (0, 0, "")

    def test_what_is_not_initialized_cannot_be_written(self, talk: ShareTalk) -> None:
        assert talk.write("0 k1") is INVALID

    def test_a_deleted_topic(self, talk: ShareTalk) -> None:
        talk.initialize()
        talk.delete_topic()
        assert talk.write("0 k1") is UNKNOWN_TOPIC

    def test_one_operation_has_one_batch_and_a_result_for_each(self, talk: ShareTalk) -> None:
        talk.initialize()
        talk.initialize(key=OTHER)
        updates = {KEY: update("0 k1"), NOWHERE: update("0 k1"), OTHER: update("1 k1")}
        results: list[dict[SharePartitionKey, ApiError | None]] = []
        talk.runner.run(lambda machine: machine.write(updates)).when_done(results.append)
        assert [type(result).__name__ for result in results[0].values()] == [
            "NoneType",
            "ApiError",
            "NoneType",
        ]
        assert len(talk.runner.log) == 3
        assert kinds(talk.runner.records) == "ssuu"


class TestSnapshots:
    def test_after_many_updates_the_whole_state_is_written(self) -> None:
        talk = ShareTalk(ShareSettings(updates_per_snapshot=3))
        talk.initialize()
        for offset in range(9):
            talk.write(f"{offset} k1", start=min(offset, 2), leader_epoch=offset)
        assert kinds(talk.runner.records) == "suuusuuusu"
        assert talk.state() == (0, 2, "2-8 k1")
        assert talk.summary().leader_epoch == 8
        last = decode_share_record(talk.runner.records[8])
        assert last is not None
        assert isinstance(last.value, ShareSnapshotValue)
        assert last.value.snapshot_epoch == 2

    def test_a_read_may_write_one_as_well(self) -> None:
        talk = ShareTalk(ShareSettings(updates_per_snapshot=1))
        talk.initialize()
        talk.write("0-4 k1", count=5)
        talk.read(1)
        assert kinds(talk.runner.records) == "sus"
        assert talk.summary() == StateSummary(0, 1, 0, 5)
        assert talk.state() == (0, 0, "0-4 k1")

    def test_updates_name_their_snapshot(self, talk: ShareTalk) -> None:
        talk.initialize()
        talk.initialize(state_epoch=1)
        talk.write("0 k1", state_epoch=1)
        stored = decode_share_record(talk.runner.records[-1])
        assert stored is not None
        assert isinstance(stored.value, ShareUpdateValue)
        assert stored.value.snapshot_epoch == 1


class TestDelete:
    def test_a_share_partition_is_forgotten(self, talk: ShareTalk) -> None:
        talk.initialize()
        assert talk.delete() is OK
        assert talk.read() is INVALID
        assert talk.summary() == StateSummary(0, 0, -1, -1)
        assert talk.delete() is OK
        assert kinds(talk.runner.records) == "st"

    def test_a_topic_that_is_gone(self, talk: ShareTalk) -> None:
        assert talk.delete(NOWHERE) is UNKNOWN_TOPIC
        assert talk.summary(NOWHERE) is UNKNOWN_TOPIC


def test_a_successor_has_the_same_state(talk: ShareTalk) -> None:
    talk.initialize()
    talk.initialize(7, key=OTHER)
    talk.write("0-9 a1")
    talk.write("3-5 k1", start=2, count=3, leader_epoch=2)
    talk.write("8 x5", key=OTHER)
    before = talk.state(), talk.summary(), talk.state(OTHER)
    talk.runner.crash()
    assert (talk.state(), talk.summary(), talk.state(OTHER)) == before


def test_records_of_other_kinds_are_skipped(talk: ShareTalk) -> None:
    talk.machine.replay(CoordinatorRecord(b"\0\x09whatever", b"\0\0"), None)
    assert list(talk.machine.keys) == []


def test_an_update_without_its_snapshot_is_skipped(talk: ShareTalk) -> None:
    other = ShareTalk()
    other.initialize()
    other.write("0 k1")
    talk.machine.replay(other.runner.records[-1], None)
    assert talk.machine.state_of(KEY) is None


def test_a_shipment_stays_until_another_one_replaces_it() -> None:
    talk = ShareTalk(ShareSettings(updates_per_snapshot=3))
    talk.initialize()
    for number in range(9):
        shipment = Shipment(TopicId(b"d" * 16), 0, 7, 0, number, ((number, number),))
        change = update(f"{number} w1")
        if number in {1, 5}:
            change = change._replace(shipment=shipment)
        assert talk.write_update(change) is OK
        found = talk.read(0)
        assert isinstance(found, StoredState)
        stored = None if found.shipment is None else found.shipment.base_sequence
        assert stored == (None if number < 1 else 1 if number < 5 else 5)
    assert talk.state() == (0, 0, "0-8 w1")
    assert kinds(talk.runner.records) == "suuusuuusu"
