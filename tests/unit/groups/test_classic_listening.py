"""Tests heartbeats that wait, so that members learn of a rebalance as soon as it begins."""

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.model.settings import GroupSettings
from tests.support.talk.classic_talk import SESSION_MS, ClassicTalk, TalkingMember

WAIT_MS = min(GroupSettings().heartbeat_wait_ms, SESSION_MS // 3)


@pytest.fixture
def pair(talk: ClassicTalk) -> tuple[TalkingMember, TalkingMember]:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice, bob)
    return alice, bob


Pair = tuple[TalkingMember, TalkingMember]


def test_nothing_happens_for_a_while(talk: ClassicTalk, pair: Pair) -> None:
    alice, _ = pair
    beat = alice.send_heartbeat(waits=True)
    talk.pass_time(WAIT_MS - 1)
    assert beat.waiting
    talk.pass_time(1)
    assert beat.code is ErrorCode.NONE


def test_it_waits_no_longer_than_a_third_of_the_session(talk: ClassicTalk) -> None:
    hasty = talk.member("hasty")
    hasty.session_ms = 6_000
    talk.stable(hasty)
    beat = hasty.send_heartbeat(waits=True)
    talk.pass_time(2_000 - 1)
    assert beat.waiting
    talk.pass_time(1)
    assert beat.code is ErrorCode.NONE


def test_it_never_waits_for_longer_than_it_is_set_to() -> None:
    talk = ClassicTalk(GroupSettings(heartbeat_wait_ms=200))
    alice = talk.member("alice")
    talk.stable(alice)
    beat = alice.send_heartbeat(waits=True)
    talk.pass_time(200)
    assert beat.code is ErrorCode.NONE


def test_it_need_not_wait() -> None:
    talk = ClassicTalk(GroupSettings(heartbeat_wait_ms=0))
    alice = talk.member("alice")
    talk.stable(alice)
    assert alice.send_heartbeat(waits=True).code is ErrorCode.NONE


def test_brokers_that_come_or_leave_are_known_at_once(talk: ClassicTalk, pair: Pair) -> None:
    alice, bob = pair
    beats = [member.send_heartbeat(waits=True) for member in pair]
    carol = talk.member("carol")
    carol.join()
    assert [beat.code for beat in beats] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    assert alice.send_heartbeat(waits=True).code is ErrorCode.REBALANCE_IN_PROGRESS
    assert bob.leave() is ErrorCode.NONE


def test_a_removed_member_gets_an_error(talk: ClassicTalk, pair: Pair) -> None:
    alice, _ = pair
    beat = alice.send_heartbeat(waits=True)
    assert alice.leave() is ErrorCode.NONE
    assert beat.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_what_a_member_asks_next_does_not_wait_behind_it(talk: ClassicTalk, pair: Pair) -> None:
    alice, bob = pair
    beats = [member.send_heartbeat(waits=True) for member in pair]
    alice.change_subscription()
    assert (beats[0].code, beats[1].waiting) == (ErrorCode.NONE, True)
    again = alice.send_heartbeat(waits=True)
    another = alice.send_heartbeat(waits=True)
    assert (again.code, another.waiting) == (ErrorCode.NONE, True)
    alice.member_id = "nobody"
    alice.change_subscription()
    assert another.waiting
    assert bob.heartbeat() is ErrorCode.NONE


def test_a_waiting_heartbeat_does_not_extend_the_session(talk: ClassicTalk, pair: Pair) -> None:
    alice, bob = pair
    alice.send_heartbeat(waits=True)
    for _ in range(4):
        talk.pass_time(SESSION_MS // 4)
        bob.heartbeat()
    assert alice.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_does_not_wait(talk: ClassicTalk) -> None:
    alice = talk.member("alice", instance_id="a")
    talk.stable(alice)
    assert alice.send_heartbeat(waits=True).code is ErrorCode.NONE
