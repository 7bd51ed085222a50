"""Tests LeaveGroup, and groups that become empty."""

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.leave_group import MemberIdentity
from tests.support.talk.classic_talk import ClassicTalk


def test_a_leaving_member_makes_the_others_rejoin(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice, bob)
    assert alice.leave() is ErrorCode.NONE
    assert bob.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    bob.take(bob.join())
    assert (bob.generation, bob.leads) == (2, True)


def test_unknown_members_cannot_leave(talk: ClassicTalk) -> None:
    eve = talk.member("eve", member_id="eve-1")
    assert eve.leave() is ErrorCode.UNKNOWN_MEMBER_ID  # there is no group
    talk.stable(talk.member("alice"))
    assert eve.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    assert talk.group.state == "Stable"


def test_the_last_to_leave_leaves_an_empty_group(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice, bob)
    leavers = [MemberIdentity(member_id=m.member_id) for m in (alice, bob)]
    assert [m.error_code for m in talk.leave(*leavers).answer.members] == [0, 0]
    group = talk.group
    assert (group.state, group.generation, group.leader) == ("Empty", 2, None)
    assert (group.protocol_type, group.protocol) == ("consumer", None)
    assert talk.timers == set()
    talk.runner.crash()
    assert (talk.group.state, talk.group.generation) == ("Empty", 2)
    assert talk.group.protocol_type == "consumer"


def test_an_empty_group_may_become_one_of_another_type(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    alice.leave()
    worker = talk.member("worker", protocol_type="connect", protocols={"eager": b""})
    joined = worker.join()
    talk.pass_time(100)
    assert (joined.answer.generation_id, joined.answer.protocol_type) == (3, "connect")


def test_a_member_that_leaves_while_waiting_gets_a_response_and_the_rest_continue(
    talk: ClassicTalk,
) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice, bob)
    waiting = alice.join()
    assert bob.leave() is ErrorCode.NONE
    assert waiting.answer.generation_id == 2
    carol = talk.member("carol")
    new = carol.join()
    assert carol.leave() is ErrorCode.NONE
    assert new.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_when_all_leave_the_first_rebalance_the_group_runs_empty_in_time(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    waiting = alice.join()
    assert alice.leave() is ErrorCode.NONE
    assert waiting.code is ErrorCode.UNKNOWN_MEMBER_ID
    talk.pass_time(100)
    assert (talk.group.state, talk.group.generation) == ("Empty", 1)


def test_a_new_member_that_leaves_causes_no_rebalance(talk: ClassicTalk) -> None:
    alice, bob = talk.stable_with_new_member()
    assert bob.leave() is ErrorCode.NONE
    assert alice.heartbeat() is ErrorCode.NONE
    assert bob.join_once().code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_member_that_leaves_is_not_waited_for(talk: ClassicTalk) -> None:
    alice, bob = talk.stable_with_new_member()
    waiting = alice.join()
    assert waiting.waiting
    bob.leave()
    assert waiting.answer.generation_id == 2


def test_a_group_is_empty_even_if_that_cannot_be_stored(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    talk.runner.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert alice.leave() is ErrorCode.KAFKA_STORAGE_ERROR
    assert talk.group.state == "Empty"
    talk.runner.crash()
    assert talk.group.state == "Stable"  # she is still in the log, and her session will expire
    talk.runner.refusal = None
    talk.pass_time(10_000)
    assert talk.group.state == "Empty"
