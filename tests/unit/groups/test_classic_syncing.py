"""Tests SyncGroup: the leader's assignment is stored and then sent to members, or neither."""

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.coordinator_codec import decode_group_record
from barnabas.protocol.coordinator_records.group_metadata import GroupMetadataValue
from tests.support.talk.classic_talk import REBALANCE_MS, SESSION_MS, ClassicTalk, TalkingMember

DELAY_MS = 100
"""The delay of the first rebalance, which starts again once if a member joined meanwhile."""


def joined(talk: ClassicTalk, *names: str) -> list[TalkingMember]:
    """Return the members of a group that waits for its leader, the first of them."""
    members = [talk.member(name) for name in names]
    asked = [member.join() for member in members]
    talk.pass_time(1000)
    for member, join in zip(members, asked, strict=True):
        member.take(join)
    return members


def last_stored(talk: ClassicTalk) -> GroupMetadataValue:
    stored = decode_group_record(talk.runner.records[-1])
    assert stored is not None
    assert isinstance(stored.value, GroupMetadataValue)
    return stored.value


def test_followers_wait_for_the_leader_and_all_for_the_commit(talk: ClassicTalk) -> None:
    alice, bob = joined(talk, "alice", "bob")
    talk.runner.hold_commits = True
    early = bob.sync()
    assert early.waiting
    leaders = alice.sync({alice.member_id: b"0", bob.member_id: b"1"})
    assert early.waiting
    assert leaders.waiting
    assert talk.group.state == "CompletingRebalance"
    talk.runner.commit()
    assert (leaders.answer.assignment, early.answer.assignment) == (b"0", b"1")
    assert talk.group.state == "Stable"
    answer = early.answer
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


def test_a_late_member_gets_the_assignment_at_once(talk: ClassicTalk) -> None:
    alice, bob = joined(talk, "alice", "bob")
    alice.sync({bob.member_id: b"all of it"})
    assert talk.group.state == "Stable"
    assert bob.sync().answer.assignment == b"all of it"
    assert alice.sync().answer.assignment == b""  # she assigned nothing to herself


def test_the_record_is_the_whole_group(talk: ClassicTalk) -> None:
    alice, bob = joined(talk, "alice", "bob")
    alice.sync({alice.member_id: b"0", bob.member_id: b"1", "stranger": b"2"})
    value = last_stored(talk)
    assert (value.generation, value.leader, value.protocol) == (1, alice.member_id, "range")
    assert value.protocol_type == "consumer"
    assert {(m.member_id, m.subscription, m.assignment) for m in value.members} == {
        (alice.member_id, b"alice", b"0"),
        (bob.member_id, b"bob", b"1"),
    }
    facts = {(m.client_host, m.session_timeout, m.rebalance_timeout) for m in value.members}
    assert facts == {("/test", SESSION_MS, REBALANCE_MS)}
    assert {m.client_id for m in value.members} == {"alice", "bob"}


def test_no_member_gets_an_assignment_that_cannot_be_stored(talk: ClassicTalk) -> None:
    alice, bob = joined(talk, "alice", "bob")
    early = bob.sync()
    talk.runner.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert alice.sync({bob.member_id: b"1"}).refusal is ErrorCode.KAFKA_STORAGE_ERROR
    assert early.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert talk.group.state == "PreparingRebalance"
    assert bob.sync().code is ErrorCode.REBALANCE_IN_PROGRESS
    talk.runner.refusal = None
    asked = [alice.join(), bob.join()]
    assert [join.answer.generation_id for join in asked] == [2, 2]
    for member, join in zip((alice, bob), asked, strict=True):
        member.take(join)
    alice.sync({bob.member_id: b"2"})
    assert bob.sync().answer.assignment == b"2"


def test_a_join_before_the_commit_cancels_the_generation(talk: ClassicTalk) -> None:
    alice, bob = joined(talk, "alice", "bob")
    talk.runner.hold_commits = True
    synced = [bob.sync(), alice.sync({bob.member_id: b"1"})]
    new = talk.member("carol", version=3).join()
    talk.runner.commit()
    assert [sync.code for sync in synced] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    assert talk.group.state == "PreparingRebalance"
    asked = [alice.join(), bob.join(), new]
    talk.runner.commit()
    assert [join.answer.generation_id for join in asked] == [2, 2, 2]


def test_a_commit_that_comes_a_generation_late_hands_out_nothing(talk: ClassicTalk) -> None:
    (alice,) = joined(talk, "alice")
    talk.runner.hold_commits = True
    old = alice.sync({alice.member_id: b"old"})
    alice.protocols = {"range": b"changed"}
    again = alice.join()
    talk.runner.commit()
    assert old.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert again.answer.generation_id == 2
    assert talk.group.state == "CompletingRebalance"


def test_a_leaders_repeated_sync_is_stored_once(talk: ClassicTalk) -> None:
    alice, bob = joined(talk, "alice", "bob")
    talk.runner.hold_commits = True
    follower = bob.sync()
    before = len(talk.runner.records)
    first = alice.sync({alice.member_id: b"first", bob.member_id: b"1"})
    second = alice.sync({alice.member_id: b"second", bob.member_id: b"2"})
    assert len(talk.runner.records) == before + 1
    talk.runner.commit()
    assert first.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert (second.answer.assignment, follower.answer.assignment) == (b"first", b"1")


def test_syncs_of_another_time_or_place_are_refused(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    assert bob.sync().code is ErrorCode.UNKNOWN_MEMBER_ID  # there is no group
    talk.stable(alice)
    assert bob.sync().code is ErrorCode.UNKNOWN_MEMBER_ID
    for generation in (-1, 0, 2):
        alice.generation = generation
        assert alice.sync().code is ErrorCode.ILLEGAL_GENERATION
    alice.generation = 1
    bob.join()
    assert alice.sync().code is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("protocol_type", ["connect", ""])
def test_a_member_of_another_protocol_is_refused(talk: ClassicTalk, protocol_type: str) -> None:
    (alice,) = joined(talk, "alice")
    alice.protocol_type = protocol_type
    assert alice.sync().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert talk.group.state == "CompletingRebalance"


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout(talk: ClassicTalk) -> None:
    alice, bob = joined(talk, "alice", "bob")
    alice.sync()
    announced_ms = 2 * DELAY_MS
    while talk.runner.now_ms < announced_ms + REBALANCE_MS - 1:
        assert alice.heartbeat() is bob.heartbeat() is ErrorCode.NONE
        talk.pass_time(min(SESSION_MS - 1, announced_ms + REBALANCE_MS - 1 - talk.runner.now_ms))
    assert alice.heartbeat() is bob.heartbeat() is ErrorCode.NONE
    talk.pass_time(1)
    assert bob.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert alice.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    again = alice.join()
    assert again.answer.generation_id == 2


def test_a_leader_that_never_syncs_costs_a_rebalance(talk: ClassicTalk) -> None:
    alice, bob = joined(talk, "alice", "bob")
    waiting = bob.sync()
    for _ in range(6):
        assert alice.heartbeat() is ErrorCode.NONE
        talk.pass_time(SESSION_MS - 1)
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert alice.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    bob.take(bob.join())
    assert bob.leads


def test_a_member_removed_while_it_waits_gets_a_response(talk: ClassicTalk) -> None:
    alice, bob = joined(talk, "alice", "bob")
    waiting = bob.sync()
    assert bob.leave() is ErrorCode.NONE
    assert waiting.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert alice.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
