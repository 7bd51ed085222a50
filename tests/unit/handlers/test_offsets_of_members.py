"""Tests offsets of a group with members: accepted commits, and offsets that must stay."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.codec import encoder
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.offset_requests import (
    At,
    Position,
    codes,
    commit_request,
    committed,
    delete_request,
    find_coordinator,
)
from tests.support.talk.requests import create_topic

A0: At = ("a", 0)
B0: At = ("b", 0)


@pytest.fixture(params=["handler", "fast path"])
def talk(tmp_path: Path, request: pytest.FixtureRequest) -> Dialogue:
    """The fast path and the normal path of a commit must give the same results."""
    talk = Dialogue(tmp_path, {"groups.offsets_partitions": 2})
    talk.fast_path = request.param == "fast path"
    find_coordinator(talk)
    create_topic(talk, "a")
    create_topic(talk, "b")
    return talk


def join(talk: Dialogue, group: str = "g") -> Any:
    """Become the only member of a group, which reads topic a."""
    subscription = encoder(ConsumerProtocolSubscription, 0)(
        ConsumerProtocolSubscription(topics=["a"])
    )
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0\0" + subscription)
    exchange = talk.send(
        JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[protocol],
        ),
        3,
    )
    talk.pass_time(30_000 - 1)
    return exchange.answer


def sync(talk: Dialogue, joined: Any) -> None:
    assigned = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
    answer = talk.ask(
        SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[assigned],
        ),
        2,
    )
    assert answer.error_code == 0


def commit(talk: Dialogue, offset: int, member: str = "", epoch: int = -1) -> int:
    (code,) = codes(
        talk.ask(commit_request("g", {A0: offset}, member=member, epoch=epoch), 8)
    ).values()
    return code


def test_only_members_of_this_generation_commit(talk: Dialogue) -> None:
    assert commit(talk, 1) == 0
    joined = join(talk)
    assert committed(talk, "g") == {A0: Position(1)}
    member, generation = joined.member_id, joined.generation_id
    assert commit(talk, 2, member, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    sync(talk, joined)
    assert commit(talk, 2, member, generation) == 0
    assert commit(talk, 3, member, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit(talk, 3, "somebody", generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(talk, 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(talk, "g") == {A0: Position(2)}


def test_a_commit_keeps_a_member_alive(talk: Dialogue) -> None:
    joined = join(talk)
    sync(talk, joined)
    for offset in range(5):
        talk.pass_time(29_000)
        assert commit(talk, offset, joined.member_id, joined.generation_id) == 0
    talk.pass_time(31_000)
    refused = commit(talk, 9, joined.member_id, joined.generation_id)
    assert refused == ErrorCode.UNKNOWN_MEMBER_ID


def test_what_members_read_stays(talk: Dialogue) -> None:
    talk.ask(commit_request("g", {A0: 1, B0: 2}), 9)
    joined = join(talk)
    sync(talk, joined)
    answer = talk.ask(delete_request("g", [("a", 0), ("b", 0)]))
    assert codes(answer) == {A0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, B0: 0}
    (result,) = talk.ask(DeleteGroupsRequest(groups_names=["g"])).results
    assert result.error_code == ErrorCode.NON_EMPTY_GROUP
    talk.ask(LeaveGroupRequest(group_id="g", member_id=joined.member_id), 2)
    assert codes(talk.ask(delete_request("g", [("a", 0)]))) == {A0: 0}
    (result,) = talk.ask(DeleteGroupsRequest(groups_names=["g"])).results
    assert result.error_code == 0
    for _ in range(2):
        assert talk.ask(ListGroupsRequest()).groups == []
        talk.restart()


def test_offsets_are_kept_for_a_while_after_the_last_member_left(tmp_path: Path) -> None:
    settings = {"groups.offsets_retention": "10m", "groups.offsets_retention_check_interval": "1m"}
    talk = Dialogue(tmp_path, {"groups.offsets_partitions": 1, **settings})
    find_coordinator(talk)
    create_topic(talk, "a")
    joined = join(talk)
    sync(talk, joined)
    assert commit(talk, 5, joined.member_id, joined.generation_id) == 0
    for _ in range(40):
        talk.pass_time(29_000)
        heartbeat(talk, joined)
    assert committed(talk, "g") == {A0: Position(5)}
    talk.ask(LeaveGroupRequest(group_id="g", member_id=joined.member_id), 2)
    talk.pass_time(9 * 60_000)
    assert committed(talk, "g") == {A0: Position(5)}
    talk.pass_time(2 * 60_000)
    assert committed(talk, "g") == {}
    assert talk.ask(ListGroupsRequest()).groups == []


def heartbeat(talk: Dialogue, joined: Any) -> None:
    answer = talk.ask(
        HeartbeatRequest(
            group_id="g", generation_id=joined.generation_id, member_id=joined.member_id
        ),
        2,
    )
    assert answer.error_code == 0
