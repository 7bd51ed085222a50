"""Tests static members (KIP-345): an instance id keeps its place, and fences the old process."""

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.leave_group import MemberIdentity
from tests.support.talk.classic_talk import SESSION_MS, ClassicTalk, TalkingMember


def again(talk: ClassicTalk, member: TalkingMember) -> TalkingMember:
    """Return a static member after a restart, without a member id."""
    return talk.member(
        f"{member.name}-again", instance_id=member.instance_id, protocols=member.protocols
    )


def pair(talk: ClassicTalk) -> tuple[TalkingMember, TalkingMember]:
    """Return a leader and a follower of a stable group, both static."""
    members = talk.member("alice", instance_id="a"), talk.member("bob", instance_id="b")
    talk.stable(*members)
    return members


def test_a_static_member_needs_no_invitation(talk: ClassicTalk) -> None:
    alice = talk.member("alice", instance_id="a")
    joined = alice.join_once()
    assert joined.waiting
    talk.pass_time(100)
    assert joined.answer.member_id.startswith("a-")
    assert [m.group_instance_id for m in joined.answer.members] == ["a"]


def test_a_follower_comes_back_without_a_rebalance(talk: ClassicTalk) -> None:
    alice, bob = pair(talk)
    new = again(talk, bob)
    answer = new.join_once().answer
    assert (answer.generation_id, answer.leader, answer.members) == (1, alice.member_id, [])
    assert not answer.skip_assignment
    assert answer.member_id.startswith("b-")
    assert answer.member_id != bob.member_id
    new.member_id, new.generation = answer.member_id, 1
    assert new.sync().answer.assignment == b"bob"
    assert alice.heartbeat() is new.heartbeat() is ErrorCode.NONE
    assert talk.group.state == "Stable"


@pytest.mark.parametrize("version", [5, 8, 9])
def test_a_leader_comes_back_without_a_rebalance(talk: ClassicTalk, version: int) -> None:
    alice, bob = pair(talk)
    new = again(talk, alice)
    new.version = version
    answer = new.join_once().answer
    if version >= 9:
        assert answer.skip_assignment
        assert answer.leader == answer.member_id
        assert {m.member_id for m in answer.members} == {answer.member_id, bob.member_id}
    else:
        assert (answer.leader, answer.members) == (alice.member_id, [])
        assert not answer.skip_assignment
    assert talk.group.leader == answer.member_id
    new.member_id, new.generation = answer.member_id, answer.generation_id
    assert new.sync().answer.assignment == b"alice"


def test_the_former_self_is_fenced(talk: ClassicTalk) -> None:
    _, bob = pair(talk)
    again(talk, bob).join_once()
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert bob.heartbeat() is bob.leave() is bob.commits() is fenced
    assert bob.join().code is bob.sync().code is fenced
    bob.instance_id = None  # a client that hides its instance id is not a member
    assert bob.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unknown_instance_is_no_member(talk: ClassicTalk) -> None:
    alice, _ = pair(talk)
    alice.instance_id = "c"
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert alice.heartbeat() is alice.leave() is alice.commits() is unknown
    assert alice.join().code is alice.sync().code is unknown


def test_the_return_is_stored_before_it_is_reported(talk: ClassicTalk) -> None:
    _, bob = pair(talk)
    talk.runner.hold_commits = True
    joined = again(talk, bob).join_once()
    assert joined.waiting
    talk.runner.commit()
    talk.runner.crash()
    assert talk.group.instances["b"] == joined.answer.member_id


def test_a_return_that_cannot_be_stored_did_not_happen(talk: ClassicTalk) -> None:
    alice, bob = pair(talk)
    talk.runner.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert again(talk, alice).join_once().refusal is ErrorCode.KAFKA_STORAGE_ERROR
    assert alice.heartbeat() is bob.heartbeat() is ErrorCode.NONE
    assert talk.group.leader == alice.member_id
    talk.pass_time(SESSION_MS)
    assert alice.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID  # its session is tracked as before


def test_the_former_session_does_not_end_the_new_one(talk: ClassicTalk) -> None:
    alice, bob = pair(talk)
    assert alice.heartbeat() is bob.heartbeat() is ErrorCode.NONE
    talk.pass_time(SESSION_MS - 1)
    alice.heartbeat()
    new = again(talk, bob)
    new.take(new.join_once())
    talk.pass_time(SESSION_MS - 1)
    assert new.heartbeat() is ErrorCode.NONE
    talk.pass_time(SESSION_MS)
    assert new.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_return_with_other_metadata_but_the_same_protocol_is_no_reason(talk: ClassicTalk) -> None:
    _, bob = pair(talk)
    new = again(talk, bob)
    new.protocols = {"range": b"other topics"}
    assert new.join_once().answer.generation_id == 1


def test_a_return_that_changes_the_vote_is_a_rebalance(talk: ClassicTalk) -> None:
    alice = talk.member("alice", instance_id="a", protocols={"range": b"", "robin": b""})
    talk.stable(alice)
    new = again(talk, alice)
    new.protocols = {"robin": b""}
    answer = new.join_once().answer
    assert (answer.generation_id, answer.protocol_name) == (2, "robin")
    assert talk.group.state == "CompletingRebalance"


def test_a_return_amid_a_rebalance_joins_it(talk: ClassicTalk) -> None:
    alice, bob = pair(talk)
    waiting = alice.join()
    assert waiting.waiting
    new = again(talk, bob)
    new.take(new.join_once())
    assert new.generation == waiting.answer.generation_id == 2
    assert bob.heartbeat() is ErrorCode.FENCED_INSTANCE_ID


def test_a_return_before_the_assignment_is_a_rebalance(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice", instance_id="a"), talk.member("bob", instance_id="b")
    asked = [alice.join(), bob.join()]
    talk.pass_time(1000)
    alice.take(asked[0])
    bob.take(asked[1])
    waiting = bob.sync()
    new = again(talk, bob)
    joined = new.join_once()
    assert waiting.code is ErrorCode.FENCED_INSTANCE_ID
    assert alice.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    alice.take(alice.join())
    new.take(joined)
    assert (alice.generation, new.generation, alice.leads) == (2, 2, True)


def test_a_former_self_that_waits_to_join_is_fenced(talk: ClassicTalk) -> None:
    alice = talk.member("alice", instance_id="a")
    waiting = alice.join_once()
    new = again(talk, alice).join_once()
    assert waiting.code is ErrorCode.FENCED_INSTANCE_ID
    talk.pass_time(100)
    assert len(new.answer.members) == 1


def test_a_static_member_that_is_late_stays_until_its_session_ends(talk: ClassicTalk) -> None:
    alice = talk.member("alice", instance_id="a", session_ms=200_000)
    bob = talk.member("bob")
    talk.stable(alice, bob)
    bob.protocols = {"range": b"changed"}
    joined = bob.join()
    for _ in range(6):
        talk.pass_time(SESSION_MS)
    assert len(joined.answer.members) == 2


def test_when_all_are_static_and_away_the_rebalance_continues_until_one_is_back(
    talk: ClassicTalk,
) -> None:
    alice = talk.member("alice", instance_id="a", session_ms=200_000, rebalance_ms=10_000)
    bob = talk.member("bob", instance_id="b", session_ms=200_000, rebalance_ms=10_000)
    talk.stable(alice, bob)
    bob.leave()
    talk.pass_time(50_000)
    assert talk.group.state == "PreparingRebalance"
    new = again(talk, alice)
    answer = new.join_once().answer
    assert (answer.generation_id, answer.leader) == (2, answer.member_id)


def test_tools_remove_members_by_instance_id(talk: ClassicTalk) -> None:
    alice, bob = pair(talk)
    leavers = [
        MemberIdentity(member_id="", group_instance_id="b"),
        MemberIdentity(member_id="", group_instance_id="nobody"),
        MemberIdentity(member_id="", group_instance_id=None),
        MemberIdentity(member_id=bob.member_id, group_instance_id="a"),
        MemberIdentity(member_id="eve", group_instance_id=None),
    ]
    answer = talk.leave(*leavers).answer
    assert answer.error_code == 0
    assert [(m.member_id, m.group_instance_id, m.error_code) for m in answer.members] == [
        ("", "b", 0),
        ("", "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", None, ErrorCode.UNKNOWN_MEMBER_ID),
        (bob.member_id, "a", ErrorCode.FENCED_INSTANCE_ID),
        ("eve", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert list(talk.group.members) == [alice.member_id]
    assert alice.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_instance_id_that_left_is_free(talk: ClassicTalk) -> None:
    alice, bob = pair(talk)
    assert bob.leave() is ErrorCode.NONE
    alice.take(alice.join())
    alice.sync()
    new = again(talk, bob)
    assert new.join_once().waiting
    assert talk.group.state == "PreparingRebalance"
