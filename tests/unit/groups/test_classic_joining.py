"""Tests JoinGroup: new members, refusals, and the protocol of a generation."""

import re

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import GroupSettings
from tests.support.talk.classic_talk import GROUP, REBALANCE_MS, SESSION_MS, ClassicTalk

NEWCOMER_MS = 300_000


def test_a_new_member_gets_an_id_first(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    first = alice.join_once()
    assert first.code is ErrorCode.MEMBER_ID_REQUIRED
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(f"alice-{uuid}", first.answer.member_id)
    assert talk.group.state == "Empty"
    alice.member_id = first.answer.member_id
    second = alice.join_once()
    assert second.waiting
    assert talk.group.state == "PreparingRebalance"
    talk.pass_time(100)
    answer = second.answer
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert answer.leader == answer.member_id == alice.member_id
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert [(m.member_id, m.metadata) for m in answer.members] == [(alice.member_id, b"alice")]
    assert talk.group.state == "CompletingRebalance"


@pytest.mark.parametrize("version", [0, 3])
def test_before_version_4_a_new_member_joins_at_once(talk: ClassicTalk, version: int) -> None:
    joined = talk.member("alice", version=version).join_once()
    assert joined.waiting
    talk.pass_time(100)
    assert joined.answer.member_id.startswith("alice-")


def test_version_0_has_the_session_timeout_for_everything(talk: ClassicTalk) -> None:
    talk.member("alice", version=0, rebalance_ms=-1).join()
    assert talk.group.rebalance_timeout_ms == SESSION_MS


def test_an_id_that_was_not_used_in_time_is_worth_nothing(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    alice.member_id = alice.join_once().answer.member_id
    talk.pass_time(SESSION_MS)
    assert alice.join_once().code is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("there", [False, True])
def test_a_member_id_from_nowhere_is_refused(talk: ClassicTalk, there: bool) -> None:
    if there:
        talk.stable(talk.member("alice"))
    assert talk.member("eve", member_id="eve-1").join().code is ErrorCode.UNKNOWN_MEMBER_ID
    assert (GROUP in talk.runner.machine.groups) == there


@pytest.mark.parametrize(
    ("session_ms", "code"),
    [
        (5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_session_timeouts_have_bounds(talk: ClassicTalk, session_ms: int, code: ErrorCode) -> None:
    assert talk.member("alice", session_ms=session_ms).join_once().code is code


def test_the_first_rebalance_waits_for_company_while_company_comes(talk: ClassicTalk) -> None:
    first = talk.member("a").join()
    talk.pass_time(60)
    second = talk.member("b").join()
    talk.pass_time(60)  # the first wait is over; b joined meanwhile
    assert first.waiting
    third = talk.member("c").join()
    talk.pass_time(80)
    assert first.waiting  # c joined in the second wait
    talk.pass_time(99)
    assert third.waiting
    talk.pass_time(1)
    assert {j.answer.generation_id for j in (first, second, third)} == {1}
    assert len(first.answer.members) == 3
    assert second.answer.members == third.answer.members == []


def test_company_is_not_waited_for_longer_than_the_rebalance_timeout(talk: ClassicTalk) -> None:
    joined = [talk.member("a", rebalance_ms=250).join()]
    for number in range(4):
        talk.pass_time(50)
        joined.append(talk.member(f"b{number}", rebalance_ms=250).join())
    talk.pass_time(49)
    assert joined[0].waiting
    talk.pass_time(1)
    assert not any(each.waiting for each in joined)


def test_without_a_delay_the_first_rebalance_is_over_at_once() -> None:
    talk = ClassicTalk(GroupSettings(initial_rebalance_delay_ms=0))
    joined = talk.member("a").join()
    talk.pass_time(1)
    assert joined.answer.generation_id == 1


def test_a_new_member_makes_all_members_rejoin(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice)
    new = bob.join()
    assert talk.group.state == "PreparingRebalance"
    assert alice.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    again = alice.join()
    assert (again.answer.generation_id, new.answer.generation_id) == (2, 2)
    assert again.answer.leader == new.answer.leader == alice.member_id
    assert {m.metadata for m in again.answer.members} == {b"alice", b"bob"}


def test_a_member_that_does_not_join_in_time_is_removed(talk: ClassicTalk) -> None:
    members = [talk.member(name, session_ms=300_000) for name in ("alice", "bob")]
    alice, bob = members
    bob.rebalance_ms = 2 * REBALANCE_MS
    talk.stable(alice, bob)
    new = talk.member("carol", session_ms=300_000).join()
    bob.heartbeat()
    talk.pass_time(2 * REBALANCE_MS - 1)
    assert new.waiting  # the largest rebalance timeout counts
    talk.pass_time(1)
    assert new.answer.leader == new.answer.member_id
    assert list(talk.group.members) == [new.answer.member_id]
    assert alice.heartbeat() is bob.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_late_leader_is_replaced_by_a_member_that_came(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice", instance_id="a"), talk.member("bob")
    talk.stable(alice, bob)
    bob.protocols = {"range": b"other"}
    new = bob.join()
    for _ in range(7):
        talk.pass_time(SESSION_MS - 1)
        alice.heartbeat()
    assert new.answer.leader == bob.member_id
    assert len(new.answer.members) == 2  # a static member stays until its session expires


def test_a_new_member_with_an_id_is_waited_for_too(talk: ClassicTalk) -> None:
    alice, bob = talk.stable_with_new_member()
    again = alice.join()
    assert again.waiting
    bob.join_once()
    assert again.answer.generation_id == 2


def test_a_new_member_with_an_id_is_not_waited_for_forever(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    talk.stable(alice)
    talk.member("bob").join_once()
    again = alice.join()
    talk.pass_time(SESSION_MS)
    assert again.answer.generation_id == 2


def test_a_new_member_waits_five_minutes_at_most(talk: ClassicTalk) -> None:
    slow = talk.member("slow", rebalance_ms=2 * NEWCOMER_MS, session_ms=1_000_000)
    talk.stable(slow)
    new = talk.member("new").join()
    talk.pass_time(NEWCOMER_MS - 1)
    assert new.waiting
    talk.pass_time(1)
    assert (new.code, new.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_a_leader_that_joins_a_stable_group_causes_a_rebalance(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice, bob)
    assert alice.join().waiting
    assert talk.group.state == "PreparingRebalance"


def test_an_unchanged_follower_that_rejoins_a_stable_group_stays_in_it(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice, bob)
    answer = bob.join().answer
    assert (answer.generation_id, answer.leader, answer.members) == (1, alice.member_id, [])
    assert bob.sync().answer.assignment == b"bob"


def test_a_follower_with_other_metadata_wants_a_rebalance(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    talk.stable(alice, bob)
    bob.protocols = {"range": b"more topics"}
    assert bob.join().waiting
    again = alice.join()
    assert b"more topics" in {m.metadata for m in again.answer.members}


def test_an_answer_that_got_lost_is_given_again(talk: ClassicTalk) -> None:
    alice, bob = talk.member("alice"), talk.member("bob")
    joined = [alice.join(), bob.join()]
    talk.pass_time(1000)
    for member, asked in zip((alice, bob), joined, strict=True):
        assert member.join_once().answer == asked.answer
    alice.protocols = {"range": b"changed"}
    assert alice.join_once().waiting
    assert talk.group.state == "PreparingRebalance"


def test_a_second_join_of_the_same_member_takes_over_from_the_first(talk: ClassicTalk) -> None:
    alice = talk.member("alice")
    first = alice.join()
    second = alice.join_once()
    assert first.code is ErrorCode.REBALANCE_IN_PROGRESS
    talk.pass_time(100)
    assert second.answer.generation_id == 1


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", {"range": b""}), ("consumer", {"sticky": b""}), ("consumer", {}), ("", {})],
)
def test_a_member_must_share_a_protocol_with_all(
    talk: ClassicTalk, protocol_type: str, protocols: dict[str, bytes]
) -> None:
    talk.stable(talk.member("alice"))
    eve = talk.member("eve", protocol_type=protocol_type, protocols=protocols)
    assert eve.join().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert talk.group.state == "Stable"


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", {"range": b""}), ("consumer", {})])
def test_the_first_member_must_have_a_protocol(
    talk: ClassicTalk, protocol_type: str, protocols: dict[str, bytes]
) -> None:
    eve = talk.member("eve", protocol_type=protocol_type, protocols=protocols)
    assert eve.join().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert GROUP not in talk.runner.machine.groups


def test_members_vote_for_a_protocol_that_all_know(talk: ClassicTalk) -> None:
    likes = [
        ["sticky", "range", "robin"],
        ["range", "robin"],
        ["robin", "range"],
        ["robin", "range"],
    ]
    joined = [
        talk.member(f"m{n}", protocols={name: f"{n}{name}".encode() for name in names}).join()
        for n, names in enumerate(likes)
    ]
    talk.pass_time(1000)
    assert {j.answer.protocol_name for j in joined} <= {"range", "robin"}
    assert len({j.answer.protocol_name for j in joined}) == 1
    chosen = joined[0].answer.protocol_name
    assert {m.metadata for m in joined[0].answer.members} == {
        f"{n}{chosen}".encode() for n in range(4)
    }


def test_the_protocol_with_most_votes_wins(talk: ClassicTalk) -> None:
    likes = [["range", "robin"], ["robin", "range"], ["robin", "range"]]
    joined = [
        talk.member(f"m{n}", protocols=dict.fromkeys(names, b"")).join()
        for n, names in enumerate(likes)
    ]
    talk.pass_time(1000)
    assert joined[0].answer.protocol_name == "robin"


def test_a_group_of_another_type_works_the_same(talk: ClassicTalk) -> None:
    workers = [
        talk.member(n, protocol_type="connect", protocols={"sessioned": n.encode()}) for n in "ab"
    ]
    talk.stable(*workers)
    assert talk.group.protocol_type == "connect"
    assert not talk.group.subscribes_to("anything")


def test_a_full_group_accepts_no_other_member() -> None:
    talk = ClassicTalk(GroupSettings(max_size=2))
    alice, bob, carol = (talk.member(name) for name in ("alice", "bob", "carol"))
    talk.stable(alice, bob)
    refused = carol.join()
    assert (refused.code, refused.answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert talk.group.state == "Stable"


def test_a_member_that_finds_a_joining_group_full_is_not_waited_for() -> None:
    talk = ClassicTalk(GroupSettings(max_size=2))
    alice, bob, carol = (talk.member(name) for name in ("alice", "bob", "carol"))
    talk.stable(alice, bob)
    again = alice.join()
    carol.member_id = carol.join_once().answer.member_id
    assert bob.join().waiting
    assert carol.join_once().code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert again.answer.generation_id == 2


def test_while_a_full_group_gathers_the_last_to_come_is_left_out() -> None:
    talk = ClassicTalk(GroupSettings(max_size=2))
    joined = [talk.member(name, version=3).join() for name in ("a", "b", "c")]
    assert joined[2].code is ErrorCode.GROUP_MAX_SIZE_REACHED
    talk.pass_time(1000)
    assert [j.answer.generation_id for j in joined[:2]] == [1, 1]


def test_a_new_member_may_find_the_group_full() -> None:
    talk = ClassicTalk(GroupSettings(max_size=1))
    alice, bob = talk.member("alice"), talk.member("bob")
    bob.member_id = bob.join_once().answer.member_id
    talk.stable(alice)
    assert bob.join_once().code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not talk.group.invited


def test_a_group_that_cannot_be_stored_is_not_there() -> None:
    talk = ClassicTalk()
    talk.runner.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert talk.member("alice", version=3).join().refusal is ErrorCode.KAFKA_STORAGE_ERROR
    assert GROUP not in talk.runner.machine.groups
    assert talk.timers == set()
    talk.runner.refusal = None
    talk.stable(talk.member("alice"))
