"""Tests classic groups with frames, in every version that is served."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.group_requests import heartbeat_of, join_group, sync_group

GROUP = "readers"
JOIN_VERSIONS = range(10)
STATIC_FROM = 5


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    talk = Dialogue(tmp_path, {"groups.offsets_partitions": 2})
    talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]))
    return talk


def send_join(talk: Dialogue, version: int, instance_id: str | None = None) -> Exchange:
    """Join as a new member, with as many requests as the version needs."""
    exchange = talk.send(join_group(GROUP, "", instance_id), version)
    if version < 4 or instance_id is not None:
        return exchange
    assert exchange.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return talk.send(join_group(GROUP, exchange.answer.member_id), version)


def heartbeat(talk: Dialogue, joined: Any, version: int = 4) -> int:
    code: int = talk.ask(heartbeat_of(GROUP, joined), version).error_code
    return code


def send_heartbeat(talk: Dialogue, joined: Any) -> Exchange:
    return talk.send(heartbeat_of(GROUP, joined))


def leave(talk: Dialogue, version: int, *leavers: MemberIdentity) -> Any:
    if version >= 3:
        return talk.ask(LeaveGroupRequest(group_id=GROUP, members=list(leavers)), version)
    (leaver,) = leavers
    return talk.ask(LeaveGroupRequest(group_id=GROUP, member_id=leaver.member_id), version)


def describe(talk: Dialogue, version: int = 6) -> Any:
    (group,) = talk.ask(DescribeGroupsRequest(groups=[GROUP]), version).groups
    return group


def gather(talk: Dialogue) -> None:
    """Wait until a new group waits for no more members."""
    for _ in range(3):
        talk.pass_time(100)


def stable(talk: Dialogue, version: int = 9, *instances: str | None) -> list[Any]:
    """Return the JoinGroup responses of a group with two members, the leader's first."""
    exchanges = [send_join(talk, version, instance) for instance in instances or (None, None)]
    gather(talk)
    joined = [exchange.answer for exchange in exchanges]
    leader, follower = joined
    version = min(version, 5)
    waiting = talk.send(sync_group(GROUP, follower), version)
    assert waiting.waiting
    given = {leader.member_id: b"first", follower.member_id: b"second"}
    assert talk.ask(sync_group(GROUP, leader, given), version).assignment == b"first"
    assert waiting.answer.assignment == b"second"
    return joined


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_a_group_lives_and_dies_in_every_version(talk: Dialogue, version: int) -> None:
    leader, follower = stable(talk, version)
    assert leader.leader == follower.leader == leader.member_id
    assert (leader.protocol_name, len(leader.members), follower.members) == ("range", 2, [])
    assert leader.protocol_type == ("consumer" if version >= 7 else None)
    assert heartbeat(talk, follower, min(version, 4)) == 0
    told = describe(talk, min(version, 6))
    assert (told.group_state, told.protocol_data) == ("Stable", "range")
    assert [(m.client_id, m.client_host) for m in told.members] == [("dialogue", "/test")] * 2
    assert [m.member_assignment for m in told.members] == [b"first", b"second"]
    old = min(version, 5)
    left = leave(talk, old, MemberIdentity(member_id=follower.member_id))
    assert left.error_code == 0
    assert [m.error_code for m in left.members] == ([0] if old >= 3 else [])
    assert heartbeat(talk, leader, min(version, 4)) == ErrorCode.REBALANCE_IN_PROGRESS
    unknown = leave(talk, old, MemberIdentity(member_id=follower.member_id))
    told_above = unknown.error_code if old < 3 else unknown.members[0].error_code
    assert told_above == ErrorCode.UNKNOWN_MEMBER_ID
    leave(talk, old, MemberIdentity(member_id=leader.member_id))
    assert describe(talk, min(version, 6)).group_state == "Empty"


@pytest.mark.parametrize("version", range(STATIC_FROM, 10))
def test_static_members_come_back_in_every_version(talk: Dialogue, version: int) -> None:
    leader, follower = stable(talk, version, "one", "two")
    assert [m.group_instance_id for m in leader.members] == ["one", "two"]
    back = send_join(talk, version, "one").answer
    assert (back.generation_id, back.skip_assignment) == (1, version >= 9)
    assert (back.leader == back.member_id) == (version >= 9)
    assert talk.ask(sync_group(GROUP, back), min(version, 5)).assignment == b"first"
    assert heartbeat(talk, follower) == 0
    old = HeartbeatRequest(
        group_id=GROUP, generation_id=1, member_id=leader.member_id, group_instance_id="one"
    )
    assert talk.ask(old, 4).error_code == ErrorCode.FENCED_INSTANCE_ID
    again = talk.send(join_group(GROUP, leader.member_id, "one"), version)
    assert again.answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert {m.group_instance_id for m in describe(talk).members} == {"one", "two"}
    leavers = [MemberIdentity(group_instance_id=name) for name in ("one", "two", "three")]
    left = leave(talk, min(version, 5), *leavers)
    assert [(m.group_instance_id, m.error_code) for m in left.members] == [
        ("one", 0),
        ("two", 0),
        ("three", ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert describe(talk).group_state == "Empty"


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_a_refused_join_names_its_member(talk: Dialogue, version: int) -> None:
    answer = talk.ask(join_group(GROUP, "eve", session_timeout_ms=1), version)
    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert (answer.member_id, answer.generation_id, answer.leader) == ("eve", -1, "")
    assert answer.protocol_name == (None if version >= 7 else "")


def test_a_group_needs_a_name(talk: Dialogue) -> None:
    requests = [
        join_group(GROUP, group_id=""),
        SyncGroupRequest(protocol_type="consumer", protocol_name="range"),
        HeartbeatRequest(),
        LeaveGroupRequest(),
    ]
    for request in requests:
        assert talk.ask(request).error_code == ErrorCode.INVALID_GROUP_ID


def test_from_version_5_a_sync_must_name_the_protocol(talk: Dialogue) -> None:
    leader, _ = stable(talk)
    request = sync_group(GROUP, leader)
    request.protocol_name = None
    assert talk.ask(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert talk.ask(request, 4).error_code == 0
    request.protocol_name = "robin"
    assert talk.ask(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_without_the_internal_topic_there_is_no_coordinator(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    nowhere = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert talk.ask(join_group(GROUP)).error_code == nowhere
    assert talk.ask(HeartbeatRequest(group_id=GROUP)).error_code == nowhere
    left = leave(talk, 5, MemberIdentity(member_id="m"))
    assert (left.error_code, left.members) == (nowhere, [])
    assert describe(talk).error_code == nowhere


def test_no_member_gets_an_assignment_before_it_is_on_disk(talk: Dialogue) -> None:
    exchange = send_join(talk, 9)
    gather(talk)
    joined = exchange.answer
    talk.hold_syncs = True
    waiting = talk.send(sync_group(GROUP, joined, {joined.member_id: b"work"}))
    assert waiting.waiting
    talk.release_syncs()
    assert waiting.answer.assignment == b"work"


@pytest.mark.parametrize("crash", [False, True], ids=["stop", "crash"])
def test_a_group_survives_a_restart(talk: Dialogue, crash: bool) -> None:
    leader, follower = stable(talk)
    before = describe(talk)
    talk.restart(crash=crash)
    assert describe(talk) == before
    assert heartbeat(talk, leader) == heartbeat(talk, follower) == 0
    assert talk.ask(sync_group(GROUP, follower)).assignment == b"second"
    talk.pass_time(10_000)
    assert describe(talk).group_state == "Empty"


def test_several_groups_are_described_in_the_order_asked_for(talk: Dialogue) -> None:
    stable(talk)
    names = [f"other-{number}" for number in range(5)]
    asked = [*names[:2], GROUP, *names[2:], ""]
    request = DescribeGroupsRequest(groups=asked, include_authorized_operations=True)
    groups = talk.ask(request, 5).groups
    assert [group.group_id for group in groups] == asked
    states = {group.group_id: group.group_state for group in groups}
    assert states == {**dict.fromkeys(asked, "Dead"), GROUP: "Stable"}
    assert {group.authorized_operations for group in groups} == {3400}
    refused = talk.ask(request, 6).groups[0]
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.authorized_operations == -(2**31)


def test_a_connect_cluster_elects_its_leader(talk: Dialogue) -> None:
    request = join_group(
        GROUP,
        protocol_type="connect",
        protocols=[JoinGroupRequestProtocol(name="sessioned", metadata=b"http://worker")],
    )
    request.member_id = talk.ask(request).member_id
    exchange = talk.send(request)
    gather(talk)
    answer = exchange.answer
    assert (answer.protocol_type, answer.protocol_name) == ("connect", "sessioned")
    assert [m.metadata for m in answer.members] == [b"http://worker"]


def test_a_heartbeat_waits_for_a_rebalance(talk: Dialogue) -> None:
    leader, follower = stable(talk)
    beat = send_heartbeat(talk, leader)
    assert beat.waiting
    leave(talk, 5, MemberIdentity(member_id=follower.member_id))
    assert beat.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_heartbeat_that_is_refused_does_not_wait(talk: Dialogue) -> None:
    leader, _ = stable(talk)
    leader.generation_id += 1
    assert send_heartbeat(talk, leader).answer.error_code == ErrorCode.ILLEGAL_GENERATION
