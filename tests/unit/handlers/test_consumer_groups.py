"""Tests ConsumerGroupHeartbeat and ConsumerGroupDescribe with frames."""

from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.offset_requests import codes, commit_request, fetch_group
from tests.support.talk.requests import create_topic

VERSIONS = (0, 1)


@pytest.fixture
def ready(talk: Dialogue) -> Dialogue:
    talk.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    return talk


def join(talk: Dialogue, member_id: str, version: int = 1, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
        **fields,
    )
    return talk.ask(request, version)


def heartbeat(talk: Dialogue, member_id: str, epoch: int, version: int = 1, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, **fields
    )
    return talk.ask(request, version)


def owning(topic_id: bytes, *numbers: int) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    if not numbers:
        return []
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=list(numbers))
    ]


def given(response: Any) -> list[int] | None:
    if response.assignment is None:
        return None
    return [n for topic in response.assignment.topic_partitions for n in topic.partitions]


def describe(talk: Dialogue, *group_ids: str, version: int = 1) -> Any:
    request = ConsumerGroupDescribeRequest(
        group_ids=list(group_ids), include_authorized_operations=True
    )
    return talk.ask(request, version).groups


def test_there_is_no_coordinator_before_the_topic_exists(talk: Dialogue) -> None:
    assert join(talk, "m").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (group,) = describe(talk, "g")
    assert group.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rebalance_with_restarts_in_the_middle(ready: Dialogue, version: int) -> None:
    topic_id = create_topic(ready, "t", 4)
    first = join(ready, "" if version == 0 else "one", version)
    assert (first.error_code, first.member_epoch, given(first)) == (0, 1, [0, 1, 2, 3])
    assert first.heartbeat_interval_ms == 1000
    one = first.member_id
    assert one if version == 0 else one == "one"
    assert (
        given(heartbeat(ready, one, 1, version, topic_partitions=owning(topic_id, 0, 1, 2, 3)))
        is None
    )

    second = join(ready, "two", version)
    assert (second.member_epoch, given(second)) == (2, [])
    ready.restart()
    told = heartbeat(ready, one, 1, version)
    assert told.member_epoch == 1
    kept = given(told)
    assert kept is not None
    assert len(kept) == 2
    assert given(heartbeat(ready, "two", 2, version)) is None
    ready.restart(crash=True)
    done = heartbeat(ready, one, 1, version, topic_partitions=owning(topic_id, *kept))
    assert done.member_epoch == 2
    freed = given(heartbeat(ready, "two", 2, version))
    assert sorted([*kept, *(freed or [])]) == [0, 1, 2, 3]
    (group,) = describe(ready, "g", version=version)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)

    left = heartbeat(ready, "two", -1, version)
    assert (left.error_code, left.member_id, left.member_epoch) == (0, "two", -1)
    assert given(heartbeat(ready, one, 2, version)) == [0, 1, 2, 3]


def test_a_member_that_waits_for_partitions_gets_a_short_heartbeat_interval(
    ready: Dialogue,
) -> None:
    topic_id = create_topic(ready, "t", 2)
    join(ready, "one")
    heartbeat(ready, "one", 1, topic_partitions=owning(topic_id, 0, 1))
    assert join(ready, "two").heartbeat_interval_ms == 200
    told = heartbeat(ready, "one", 1)
    assert told.heartbeat_interval_ms == 200
    done = heartbeat(ready, "one", 1, topic_partitions=owning(topic_id, *(given(told) or [])))
    assert done.heartbeat_interval_ms == 1000
    assert heartbeat(ready, "two", 2).heartbeat_interval_ms == 1000


@pytest.mark.parametrize("version", [9, 10])
def test_a_member_with_an_old_epoch_may_commit_the_partitions_that_it_kept(
    ready: Dialogue, version: int
) -> None:
    topic_id = create_topic(ready, "t", 2)
    join(ready, "one")
    heartbeat(ready, "one", 1, topic_partitions=owning(topic_id, 0, 1))
    join(ready, "two")
    (kept,) = given(heartbeat(ready, "one", 1)) or []
    assert heartbeat(ready, "one", 1, topic_partitions=owning(topic_id, kept)).member_epoch == 2

    def commit(partition: int) -> int:
        topic: str | bytes = topic_id if version >= 10 else "t"
        request = commit_request("g", {(topic, partition): 5}, member="one", epoch=1)
        (code,) = codes(ready.ask(request, version)).values()
        return code

    assert commit(kept) == 0
    assert commit(1 - kept) == ErrorCode.STALE_MEMBER_EPOCH


def test_a_member_commits_in_a_version_that_knows_member_epochs(ready: Dialogue) -> None:
    create_topic(ready, "t")
    epoch = join(ready, "one").member_epoch
    request = commit_request("g", {("t", 0): 5}, member="one", epoch=epoch)
    assert list(codes(ready.ask(request, 8)).values()) == [ErrorCode.UNSUPPORTED_VERSION]
    assert list(codes(ready.ask(request, 9)).values()) == [0]


def test_an_answer_waits_until_it_is_safe(ready: Dialogue) -> None:
    create_topic(ready, "t")
    ready.hold_syncs = True
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    exchange = ready.send(request)
    assert exchange.waiting
    ready.release_syncs()
    assert exchange.answer.member_epoch == 1


def test_what_is_refused_says_why(ready: Dialogue) -> None:
    create_topic(ready, "t")
    refused = join(ready, "m", server_assignor="fair")
    assert refused.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in refused.error_message
    refused = join(ready, "")
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "MemberId can't be empty.",
    )
    refused = join(ready, "m", subscribed_topic_regex="(")
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert heartbeat(ready, "m", 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    join(ready, "m")
    assert heartbeat(ready, "other", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(ready, "m", 7).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_topics_that_grow_are_noticed(ready: Dialogue) -> None:
    create_topic(ready, "t", 1)
    join(ready, "m")
    ready.ask(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=3, assignments=None)])
    )
    assert given(heartbeat(ready, "m", 1)) == [0, 1, 2]


def test_a_pattern_finds_a_topic_that_is_made_later(ready: Dialogue) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_regex="logs-[a-z]+|__.*",
        topic_partitions=[],
    )
    assert given(ready.ask(request)) == []
    create_topic(ready, "logs-x", 2)
    create_topic(ready, "logs-0", 2)
    assert given(heartbeat(ready, "m", 1)) == [0, 1]


def test_members_without_heartbeats_are_removed_and_sessions_survive_a_restart(
    ready: Dialogue,
) -> None:
    create_topic(ready, "t", 2)
    join(ready, "m")
    ready.pass_time(30_000)
    ready.restart()
    assert describe(ready, "g")[0].group_state == "Stable"
    ready.pass_time(44_999)
    assert describe(ready, "g")[0].group_state == "Stable"
    ready.pass_time(1)
    (group,) = describe(ready, "g")
    assert (group.group_state, group.group_epoch, group.members) == ("Empty", 2, [])


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_about_a_group(ready: Dialogue, version: int) -> None:
    topic_id = create_topic(ready, "t", 2)
    join(ready, "m", instance_id="i", rack_id="r", server_assignor="range")
    group, missing, nameless = describe(ready, "g", "none", "", version=version)
    assert group.error_code == 0
    assert (group.group_id, group.group_state, group.assignor_name) == ("g", "Stable", "range")
    assert (group.group_epoch, group.assignment_epoch) == (1, 1)
    assert group.authorized_operations == 3400
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.client_id, member.client_host) == ("dialogue", "/test")
    assert (member.member_epoch, member.subscribed_topic_names) == (1, ["t"])
    assert member.member_type == (1 if version else -1)
    (assigned,) = member.assignment.topic_partitions
    assert (assigned.topic_id, assigned.topic_name, assigned.partitions) == (topic_id, "t", [0, 1])
    assert member.target_assignment == member.assignment
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert missing.error_message == "Group none not found."
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def committed(talk: Dialogue) -> int:
    request = OffsetFetchRequest(groups=[fetch_group("g", [("t", 0)])])
    (group,) = talk.ask(request, 9).groups
    return int(group.topics[0].partitions[0].committed_offset)


def commit(talk: Dialogue, offset: int, **who: Any) -> int:
    (topic,) = talk.ask(commit_request("g", {("t", 0): offset}, **who), 9).topics
    return int(topic.partitions[0].error_code)


def classic_join(talk: Dialogue, member_id: str = "") -> Exchange:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return talk.send(request, 9)


def test_a_group_that_only_stored_offsets_becomes_one_with_members(ready: Dialogue) -> None:
    create_topic(ready, "t")
    assert commit(ready, 7) == 0
    assert join(ready, "m").error_code == 0
    assert committed(ready) == 7
    assert commit(ready, 8, member="m", epoch=1) == 0
    assert commit(ready, 9, member="m", epoch=2) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(ready, 9, member="other", epoch=1) == ErrorCode.UNKNOWN_MEMBER_ID
    ready.restart()
    assert committed(ready) == 8
    assert describe(ready, "g")[0].group_state == "Stable"


def test_empty_groups_change_their_protocol_in_both_directions(ready: Dialogue) -> None:
    create_topic(ready, "t")
    member_id = classic_join(ready).answer.member_id
    joined = classic_join(ready, member_id)
    assert join(ready, "m").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    ready.pass_time(1000)
    assert joined.answer.error_code == 0
    assert join(ready, "m").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    leaving = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)])
    assert ready.ask(leaving).members[0].error_code == 0
    assert commit(ready, 5) == 0

    assert given(join(ready, "m")) == [0]
    assert describe(ready, "g")[0].group_state == "Stable"
    refused = classic_join(ready, member_id)
    assert refused.answer.error_code != 0, "the group has a member of the other protocol"
    heartbeat(ready, "m", -1)
    ready.restart()

    member_id = classic_join(ready).answer.member_id
    joined = classic_join(ready, member_id)
    ready.pass_time(1000)
    assert joined.answer.error_code == 0
    assert describe(ready, "g")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    ready.restart()
    assert describe(ready, "g")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert committed(ready) == 5
