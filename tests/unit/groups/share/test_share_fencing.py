"""Tests share group members with wrong epochs, and groups of other types."""

import pytest

from barnabas.model.coordination import Caller
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from tests.support.talk.share_group_talk import GROUP, START_MS, ShareGroupTalk, share_reader

CALLER = Caller("client", "/host", 9, START_MS)
EMPTY_OR_NOT = pytest.mark.parametrize("empty", [False, True])


def of_other_type() -> ShareGroupTalk:
    """Return a talk in which the group is a consumer group without members."""
    talk = ShareGroupTalk({"t": 1})
    join = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    talk.run(lambda: talk.machine.consumer.heartbeat(join, CALLER._replace(version=1)))
    leave = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=-1)
    talk.run(lambda: talk.machine.consumer.heartbeat(leave, CALLER._replace(version=1)))
    return talk


def left() -> ShareGroupTalk:
    """Return a talk in which the only member has left."""
    talk, first = share_reader(1)
    first.leave()
    return talk


@pytest.mark.parametrize("change", [1, 10, -2])
def test_a_wrong_epoch_is_fenced(change: int) -> None:
    talk, first = share_reader()
    second = talk.member("second")
    second.join("t")
    first.heartbeat()
    assert first.epoch == 3
    first.epoch += change
    assert talk.refused(first.heartbeat) is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_previous_epoch_is_accepted() -> None:
    talk, first = share_reader()
    first.epoch -= 1
    assert first.heartbeat().member_epoch == talk.group.epoch


def test_a_member_may_join_again() -> None:
    talk, first = share_reader()
    first.join("t")
    assert (first.epoch, first.assigned) == (2, talk.slots("t"))


def test_who_is_no_member_is_refused() -> None:
    talk, _ = share_reader()
    stranger = talk.member("stranger")
    stranger.epoch = 1
    assert talk.refused(stranger.heartbeat) is ErrorCode.UNKNOWN_MEMBER_ID
    assert talk.refused(stranger.leave) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_does_not_exist() -> None:
    talk = ShareGroupTalk({"t": 1})
    member = talk.member("m")
    member.epoch = 1
    assert talk.refused(member.heartbeat) is ErrorCode.GROUP_ID_NOT_FOUND
    assert talk.refused(member.leave) is ErrorCode.GROUP_ID_NOT_FOUND
    describe = talk.machine.share.describe
    assert talk.refused(lambda: talk.run(lambda: describe(GROUP))) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_another_type_stays_what_it_is() -> None:
    talk = of_other_type()
    member = talk.member("m")
    assert talk.refused(lambda: member.join("t")) is ErrorCode.GROUP_ID_NOT_FOUND
    describe = talk.machine.share.describe
    assert talk.refused(lambda: talk.run(lambda: describe(GROUP))) is ErrorCode.GROUP_ID_NOT_FOUND


@EMPTY_OR_NOT
def test_a_share_group_has_no_members_of_other_protocols(*, empty: bool) -> None:
    talk = left() if empty else share_reader(1)[0]
    modern = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    caller = CALLER._replace(version=1)
    refused = talk.refused(
        lambda: talk.run(lambda: talk.machine.consumer.heartbeat(modern, caller))
    )
    assert refused is ErrorCode.GROUP_ID_NOT_FOUND
    classic = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=6000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    refused = talk.refused(lambda: talk.run(lambda: talk.machine.classic.join(classic, CALLER)))
    assert refused is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert talk.group.type == "share"


@EMPTY_OR_NOT
def test_a_share_group_has_no_committed_offsets(*, empty: bool) -> None:
    talk = left() if empty else share_reader(1)[0]
    offsets = talk.machine.offsets
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    commit = OffsetCommitRequest(
        group_id=GROUP, topics=[OffsetCommitRequestTopic(name="t", partitions=[part])]
    )
    answer = talk.run(lambda: offsets.commit(commit, CALLER))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    asked = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    assert talk.run(lambda: offsets.fetch(asked, 9, require_stable=False)).topics == []
    request = OffsetDeleteRequest(group_id=GROUP)
    refused = talk.refused(lambda: talk.run(lambda: offsets.delete(request)))
    assert refused is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_share_group_never_expires() -> None:
    talk = left()
    talk.pass_time(30 * 24 * 3_600_000)
    assert talk.group.state == "Empty"


def test_classic_tools_do_not_see_it() -> None:
    talk, _ = share_reader(1)
    request = DescribeGroupsRequest(groups=[GROUP])
    described = talk.run(lambda: talk.machine.classic.describe(request.groups[0], 5))
    assert described.group_state == "Dead"
