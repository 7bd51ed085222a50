"""Tests what a restart restores of a group, and groups that replace each other."""

from collections.abc import Collection

import pytest

from barnabas.groups.directory import GroupType
from barnabas.model.coordination import CoordinatorRecord, Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import decode_group_record, encode
from barnabas.protocol.coordinator_records.consumer_group_metadata import ConsumerGroupMetadataKey
from barnabas.protocol.coordinator_records.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from tests.support.talk.classic_talk import GROUP, SESSION_MS, ClassicTalk
from tests.support.talk.coordination import START_MS, Entry


class OtherGroup:
    """A stand-in for a group of the other protocol."""

    type = GroupType.CONSUMER
    state = "Empty"
    protocol_type = "consumer"
    empty_since_ms = None

    def __init__(self, *, is_empty: bool) -> None:
        self.group_id = GROUP
        self.is_empty = is_empty

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> None: ...

    def may_commit_late(
        self, member_id: str, epoch: int, partitions: Collection[TopicPartition]
    ) -> bool:
        return False

    def check_fetch(self, member_id: str | None, epoch: int) -> None: ...

    def touch(self, member_id: str) -> None: ...

    def subscribes_to(self, topic: str) -> bool:
        return False

    def tombstones(self) -> list[CoordinatorRecord]:
        return [encode(ConsumerGroupMetadataKey(group_id=GROUP), None)]


def test_a_stable_group_is_stable_after_a_restart(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob", instance_id="b")
    talk.stable(alice, bob)
    before = talk.describe()
    talk.runner.crash()
    assert talk.describe() == before
    group = talk.group
    assert (group.state, group.generation, group.leader) == ("Stable", 1, alice.member_id)
    assert group.instances == {"b": bob.member_id}
    assert alice.heartbeat() is bob.heartbeat() is ErrorCode.NONE
    assert bob.sync().answer.assignment == b"bob"
    assert bob.join().answer.generation_id == 1
    assert alice.join().waiting


def test_sessions_start_again_with_a_restart(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice, bob)
    talk.pass_time(SESSION_MS - 1)
    talk.runner.crash()
    talk.pass_time(SESSION_MS - 1)
    assert alice.heartbeat() is ErrorCode.NONE
    talk.pass_time(1)
    assert talk.group.state == "PreparingRebalance"
    assert list(talk.group.members) == [alice.member_id]


def test_amid_a_rebalance_a_restart_goes_back_to_the_last_generation(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice)
    new = bob.join()
    alice.take(alice.join())
    bob.take(new)
    assert alice.generation == 2
    talk.runner.crash()
    assert (talk.group.state, talk.group.generation) == ("Stable", 1)
    assert alice.heartbeat() is ErrorCode.ILLEGAL_GENERATION
    assert bob.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert alice.join().answer.generation_id == 2


def test_an_assignment_that_was_not_committed_is_gone(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    alice.take(alice.join())
    talk.runner.hold_commits = True
    asked = alice.sync({alice.member_id: b"new"})
    talk.runner.crash()
    assert asked.waiting
    alice.generation = 1
    talk.runner.hold_commits = False
    assert alice.sync().answer.assignment == b"alice"


def test_a_new_group_without_a_complete_join_is_empty(talk: ClassicTalk) -> None:
    talk.member("alice").join()
    talk.runner.crash()
    assert (talk.group.state, talk.group.generation) == ("Empty", 0)
    assert talk.group.empty_since_ms == START_MS


def test_a_group_is_over_with_its_tombstone(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice)
    alice.leave()
    bob.member_id = bob.join_once().answer.member_id
    tombstones = talk.group.tombstones()
    gone = talk.group
    talk.ask(lambda _: Outcome(None, tombstones))
    assert GROUP not in talk.runner.machine.groups
    assert gone.state == "Dead"
    assert talk.timers == set()
    assert bob.join_once().code is ErrorCode.UNKNOWN_MEMBER_ID
    talk.runner.crash()
    assert GROUP not in talk.runner.machine.groups


def test_old_records_can_be_read(talk: ClassicTalk) -> None:
    member = MemberMetadata(
        member_id="m", client_id="c", client_host="/h", session_timeout=7000, subscription=b"s"
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol="range", leader="m", members=[member]
    )
    talk.runner.log.append(Entry((encode(GroupMetadataKey(group=GROUP), value, 0),)))
    talk.runner.commit()
    talk.runner.crash()
    group = talk.group
    assert (group.state, group.generation, group.state_since_ms) == ("Stable", 4, None)
    assert group.members["m"].rebalance_timeout_ms == 7000


def test_records_are_written_as_kafka_4_does(talk: ClassicTalk) -> None:
    talk.stable(talk.member("alice"))
    for record in talk.runner.records:
        assert record.key == b"\0\2" + b"\0\5" + GROUP.encode()
        assert record.value is not None
        assert record.value[:2] == b"\0\3"
    first, last = (decode_group_record(record) for record in talk.runner.records)
    assert first is not None
    assert last is not None
    assert isinstance(first.value, GroupMetadataValue)
    assert isinstance(last.value, GroupMetadataValue)
    assert (first.value.protocol_type, first.value.generation, first.value.members) == ("", 0, [])
    assert (first.value.protocol, first.value.leader) == (None, None)


def test_a_group_that_is_over_the_limit_after_a_restart_is_made_to_join_again() -> None:
    talk = ClassicTalk()
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice, bob)
    small = ClassicTalk(GroupSettings(max_size=1))
    small.runner.log[:] = talk.runner.log
    small.runner.committed = len(small.runner.log)
    small.runner.crash()
    assert small.group.state == "PreparingRebalance"


def test_an_empty_group_of_the_other_protocol_is_replaced(talk: ClassicTalk) -> None:
    groups = talk.runner.machine.groups
    groups[GROUP] = OtherGroup(is_empty=True)
    alice = talk.member("alice")
    talk.stable(alice)
    stored = [decode_group_record(record) for record in talk.runner.records]
    assert [type(s.key).__name__ for s in stored if s] == [
        "ConsumerGroupMetadataKey",
        "GroupMetadataKey",
        "GroupMetadataKey",
    ]
    assert alice.heartbeat() is ErrorCode.NONE


def test_it_stays_where_the_replacement_cannot_be_stored(talk: ClassicTalk) -> None:
    other = OtherGroup(is_empty=True)
    talk.runner.machine.groups[GROUP] = other
    talk.runner.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert talk.member("alice", version=3).join().refusal is ErrorCode.KAFKA_STORAGE_ERROR
    assert talk.runner.machine.groups[GROUP] is other
    assert talk.timers == set()


def test_a_group_of_the_other_protocol_with_members_stays(talk: ClassicTalk) -> None:
    talk.runner.machine.groups[GROUP] = OtherGroup(is_empty=False)
    alice = talk.member("alice")
    assert alice.join().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    alice.member_id = "alice-1"
    assert alice.join().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert alice.heartbeat() is alice.leave() is alice.sync().code is unknown


@pytest.mark.parametrize(("version", "code"), [(5, 0), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_it_is_not_described_among_classic_groups(
    talk: ClassicTalk, version: int, code: int
) -> None:
    talk.runner.machine.groups[GROUP] = OtherGroup(is_empty=False)
    told = talk.describe(version)
    assert (told.group_state, told.error_code) == ("Dead", code)
    message = "Group group is not a classic group." if version >= 6 else None
    assert told.error_message == message
