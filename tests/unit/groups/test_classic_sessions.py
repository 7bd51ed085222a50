"""Tests heartbeats, and sessions that expire without them."""

from barnabas.model.errors import ErrorCode
from tests.support.talk.classic_talk import REBALANCE_MS, SESSION_MS, ClassicTalk


def test_a_heartbeat_says_how_things_are(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    assert alice.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID  # there is no group
    joined = alice.join()
    talk.pass_time(100)
    alice.take(joined)
    assert alice.heartbeat() is ErrorCode.NONE  # in CompletingRebalance, too
    alice.sync()
    assert alice.heartbeat() is ErrorCode.NONE
    alice.generation = 0
    assert alice.heartbeat() is ErrorCode.ILLEGAL_GENERATION
    alice.member_id = "eve"
    assert alice.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_member_in(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    for _ in range(5):
        talk.pass_time(SESSION_MS - 1)
        assert alice.heartbeat() is ErrorCode.NONE


def test_silence_ends_a_session_to_the_millisecond(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob", session_ms=1_000_000)
    talk.stable(alice, bob)
    talk.pass_time(4_000)
    alice.heartbeat()
    talk.pass_time(SESSION_MS - 1)
    assert talk.group.state == "Stable"
    talk.pass_time(1)
    assert talk.group.state == "PreparingRebalance"
    assert alice.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    bob.take(bob.join())
    assert (bob.generation, bob.leads) == (2, True)


def test_a_heartbeat_sets_no_timer(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    before = talk.runner.timers_set
    for _ in range(50):
        talk.pass_time(100)
        alice.heartbeat()
    assert talk.runner.timers_set == before


def test_a_commit_counts_as_a_heartbeat(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    for _ in range(5):
        talk.pass_time(SESSION_MS - 1)
        talk.group.touch(alice.member_id)
    assert alice.heartbeat() is ErrorCode.NONE
    talk.group.touch("eve")
    assert list(talk.group.members) == [alice.member_id]


def test_a_member_that_waits_for_others_does_not_expire(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob", session_ms=1_000_000)
    talk.stable(alice, bob)
    waiting = alice.join()
    talk.pass_time(REBALANCE_MS - 1)
    assert waiting.waiting
    talk.pass_time(1)
    assert waiting.answer.generation_id == 2
    talk.pass_time(SESSION_MS)  # but from then on it counts again
    assert talk.group.state == "Empty"


def test_a_member_that_waits_for_its_assignment_does_not_expire(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice", session_ms=1_000_000), talk.member("bob")
    joined = [alice.join(), bob.join()]
    talk.pass_time(1000)
    alice.take(joined[0])
    bob.take(joined[1])
    waiting = bob.sync()
    talk.pass_time(3 * SESSION_MS)
    alice.sync({bob.member_id: b"1"})
    assert waiting.answer.assignment == b"1"
    talk.pass_time(SESSION_MS - 1)
    assert bob.heartbeat() is ErrorCode.NONE


def test_the_last_silent_member_leaves_an_empty_group(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    talk.pass_time(SESSION_MS)
    group = talk.group
    assert (group.state, group.generation, group.protocol_type) == ("Empty", 2, "consumer")
    assert group.is_empty
    assert group.empty_since_ms == talk.runner.wall_ms
    assert talk.timers == set()


def test_a_new_member_that_dies_before_the_first_generation_is_forgotten(talk: ClassicTalk) -> None:
    talk.member("alice").join_once()
    assert talk.timers
    talk.pass_time(SESSION_MS)
    assert talk.group.state == "Empty"
    assert talk.timers == set()
    assert talk.group.invited == {}


def test_a_shorter_session_timeout_takes_effect_with_the_next_generation(talk: ClassicTalk) -> None:
    alice = talk.member("alice", session_ms=100_000)
    talk.stable(alice)
    alice.session_ms = SESSION_MS
    alice.take(alice.join())
    alice.sync()
    talk.pass_time(SESSION_MS)
    assert alice.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
