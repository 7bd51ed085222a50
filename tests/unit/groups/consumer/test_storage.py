"""Tests what a consumer group stores, and what a restart restores."""

from collections.abc import Collection

from barnabas.groups.consumer import consumer_records as records
from barnabas.groups.consumer.consumer_member import Member, MemberState, Profile, Standing
from barnabas.groups.directory import GroupType
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import decode_group_record, encode
from barnabas.protocol.coordinator_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from barnabas.protocol.coordinator_records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataValue,
)
from barnabas.protocol.coordinator_records.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.talk.consumer_talk import GROUP, ConsumerTalk, two_members

SESSION_MS = GroupSettings().consumer_session_timeout_ms
TOPIC = TopicId(bytes(15) + b"\1")


def kinds(talk: ConsumerTalk, since: int) -> list[str]:
    return [
        type(entry.key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
        + ("" if entry.value is not None else " ends")
        for entry in talk.written(since)
    ]


def test_a_group_is_stored_step_by_step() -> None:
    talk = ConsumerTalk({"t": 2})
    first, second = talk.member("first"), talk.member("second")
    first.join(["t"])
    assert kinds(talk, 0) == [
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    first.follow_assignment()
    since = len(talk.log)
    first.heartbeat()
    assert kinds(talk, since) == [], "an ordinary heartbeat writes nothing"
    second.join(["t"])
    assert kinds(talk, since).count("TargetAssignmentMember") == 2
    since = len(talk.log)
    second.leave()
    assert kinds(talk, since) == [
        "CurrentMemberAssignment ends",
        "TargetAssignmentMember ends",
        "MemberMetadata ends",
        "Metadata",
    ]


def test_records_read_as_they_were_written() -> None:
    profile = Profile(
        instance_id="i",
        rack_id="r",
        client_id="c",
        client_host="/h",
        names=frozenset({"b", "a"}),
        regex="x.*",
        rebalance_timeout_ms=7,
        server_assignor="range",
    )
    standing = Standing(
        epoch=5,
        previous_epoch=4,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned={(TOPIC, 0): 3, (TOPIC, 2): 5},
        pending_revocation={(TOPIC, 1): 4},
    )
    member = Member("m", profile, standing)
    stored = decode_group_record(records.profile(GROUP, member))
    assert stored is not None
    assert isinstance(stored.value, ConsumerGroupMemberMetadataValue)
    assert stored.value.subscribed_topic_names == ["a", "b"]
    assert records.read_profile(stored.value) == profile
    stored = decode_group_record(records.standing(GROUP, member))
    assert stored is not None
    assert isinstance(stored.value, ConsumerGroupCurrentMemberAssignmentValue)
    assert records.read_standing(stored.value) == standing


def test_what_older_and_later_brokers_wrote_is_read() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=6,
        state=99,
        assigned_partitions=[TopicPartitions(topic_id=TOPIC, partitions=[0, 1])],
    )
    standing = records.read_standing(value)
    assert standing.state is MemberState.UNKNOWN
    assert standing.assigned == {(TOPIC, 0): 6, (TOPIC, 1): 6}


def test_topics_of_an_older_broker_are_forgotten_with_the_group() -> None:
    talk = ConsumerTalk({"t": 1})
    first = talk.member("first")
    first.join(["t"])
    key = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    talk.machine.replay(encode(key, ConsumerGroupPartitionMetadataValue()), None)
    ended = [decode_group_record(record) for record in talk.group.tombstones()]
    assert key in [stored.key for stored in ended if stored is not None]


def test_ends_of_what_is_not_there_mean_nothing() -> None:
    talk = ConsumerTalk({"t": 1})
    first = talk.member("first")
    first.join(["t"])
    ends = talk.group.tombstones()
    other = ConsumerTalk()
    for record in ends:
        other.machine.replay(record, None)
    assert other.machine.groups == {}
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="nobody")
    talk.machine.replay(encode(key, None), None)
    assert set(talk.group.members) == {"first"}


def test_a_restart_in_the_middle_of_a_rebalance_loses_nothing() -> None:
    talk, first, second = two_members()
    first.heartbeat()
    talk.restart()
    assert talk.group.state == "Reconciling"
    second.heartbeat()
    assert second.assigned == set(), "revoked partitions are still owned"
    first.follow_assignment()
    first.heartbeat()
    talk.restart()
    second.heartbeat()
    assert second.assigned == talk.slots("t") - first.owned
    talk.settle([first, second])


def test_sessions_start_again_after_a_restart() -> None:
    talk, slow, first = two_members(2, ("slow", "first"))
    slow.heartbeat()
    talk.pass_time(SESSION_MS - 1)
    talk.restart()
    talk.pass_time(SESSION_MS - 1)
    assert len(talk.group.members) == 2
    slow.heartbeat()
    first.heartbeat()
    talk.pass_time(60_000 - SESSION_MS + 1)
    assert set(talk.group.members) == {"first"}, "the revocation timeout starts again, too"
    talk.pass_time(SESSION_MS)
    assert talk.group.is_empty


def test_a_compacted_log_makes_the_same_group() -> None:
    talk = ConsumerTalk({"t": 6})
    members = [talk.member(name) for name in "abc"]
    for count, member in enumerate(members, 1):
        member.join(["t"])
        talk.settle(members[:count])
    members[0].leave()
    talk.settle(members[1:])
    latest: dict[bytes, CoordinatorRecord] = {}
    for record in talk.log:
        latest.pop(record.key, None)
        latest[record.key] = record
    before = talk.group
    talk.log = list(latest.values())
    talk.restart()
    assert talk.group.members == before.members
    assert talk.group.targets == before.targets
    assert talk.group.state == "Stable"
    assert {talk.group.owner(slot) for slot in talk.slots("t")} == {"b", "c"}


class OldGroup:
    """A stand-in for a classic group."""

    group_id = GROUP
    type = GroupType.CLASSIC
    state = "Empty"
    protocol_type = "consumer"
    empty_since_ms = None

    def __init__(self, *, is_empty: bool) -> None:
        self.is_empty = is_empty

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> None:
        pass

    def may_commit_late(
        self, member_id: str, epoch: int, partitions: Collection[TopicPartition]
    ) -> bool:
        return False

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        pass

    def touch(self, member_id: str) -> None:
        pass

    def subscribes_to(self, topic: str) -> bool:
        return False

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(b"\x7f\xffold", None)]


def test_an_empty_classic_group_is_replaced() -> None:
    talk = ConsumerTalk({"t": 1})
    talk.machine.groups[GROUP] = OldGroup(is_empty=True)
    first = talk.member("first")
    leave = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="first", member_epoch=-1)
    assert talk.refused(leave) is ErrorCode.GROUP_ID_NOT_FOUND
    first.join(["t"])
    assert talk.log[0].key == b"\x7f\xffold"
    assert first.assigned == talk.slots("t")
    assert talk.group.type is GroupType.CONSUMER


def test_a_classic_group_with_members_is_left_alone() -> None:
    talk = ConsumerTalk({"t": 1})
    talk.machine.groups[GROUP] = OldGroup(is_empty=False)
    first = talk.member("first")
    first.subscription = {"subscribed_topic_names": ["t"]}
    assert talk.refused(first.request(full=True)) is ErrorCode.GROUP_ID_NOT_FOUND
