"""Tests members that join, share partitions, leave and expire."""

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_records.consumer_group_metadata import ConsumerGroupMetadataKey
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.talk.consumer_talk import GROUP, REBALANCE_TIMEOUT_MS, ConsumerTalk, two_members

SESSION_MS = GroupSettings().consumer_session_timeout_ms


def joining(**fields: object) -> ConsumerGroupHeartbeatRequest:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"group_id": ""}, 1),
        ({"group_id": "g" * 32_768}, 1),
        ({"member_id": "ü" * 20_000}, 1),
        ({"group_id": "  "}, 1),
        ({"member_id": ""}, 1),
        ({"member_id": "", "member_epoch": 1}, 0),
        ({"member_id": "", "member_epoch": -1}, 0),
        ({"instance_id": ""}, 1),
        ({"rack_id": " "}, 1),
        ({"rebalance_timeout_ms": -1}, 1),
        ({"topic_partitions": None}, 1),
        ({"topic_partitions": ["one"]}, 1),
        ({"subscribed_topic_names": None}, 1),
        ({"member_epoch": -2}, 1),
        ({"member_epoch": -3}, 1),
    ],
)
def test_what_cannot_be_meant_is_refused(fields: dict[str, object], version: int) -> None:
    talk = ConsumerTalk({"t": 1})
    assert talk.refused(joining(**fields), version) is ErrorCode.INVALID_REQUEST


def test_assignors_that_do_not_exist_are_refused() -> None:
    talk = ConsumerTalk({"t": 1})
    refused = talk.refused(joining(server_assignor="fair"))
    assert refused is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_the_first_member_gets_everything_in_one_round() -> None:
    talk = ConsumerTalk({"t": 3, "other": 2})
    first = talk.member("first")
    response = first.join(["t"])
    assert (response.member_id, response.member_epoch) == ("first", 1)
    assert response.heartbeat_interval_ms == 1000
    assert first.assigned == talk.slots("t")
    assert talk.group.state == "Stable"


def test_before_version_1_the_coordinator_makes_up_the_id() -> None:
    talk = ConsumerTalk({"t": 1})
    one, two = talk.member(""), talk.member("")
    one.join(["t"], version=0)
    two.join(["t"], version=0)
    assert len(one.member_id) == len(two.member_id) == 22
    assert one.member_id != two.member_id


def test_an_assignment_is_sent_if_it_changed_or_the_heartbeat_was_full() -> None:
    talk = ConsumerTalk({"t": 1})
    first = talk.member("first")
    assert first.join(["t"]).assignment is not None
    first.follow_assignment()
    assert first.heartbeat().assignment is None
    assert first.heartbeat(full=True).assignment is not None
    assert talk.group.epoch == 1


def test_a_second_member_gets_its_part_once_the_first_has_given_it_up() -> None:
    talk, first, second = two_members()
    assert (second.epoch, second.assigned) == (2, set())
    assert talk.group.state == "Reconciling"
    first.heartbeat()
    assert (first.epoch, len(first.assigned)) == (1, 2), (
        "it must give up two, and stay in its epoch"
    )
    second.heartbeat()
    assert second.assigned == set(), "no member has given up a partition yet"

    first.follow_assignment()
    first.heartbeat()
    assert first.epoch == 2
    second.heartbeat()
    assert second.assigned == talk.slots("t") - first.assigned
    assert talk.group.state == "Stable"


def test_members_that_are_not_concerned_notice_nothing() -> None:
    talk = ConsumerTalk({"t": 3})
    members = [talk.member(name) for name in "abc"]
    for member in members:
        member.join(["t"])
        talk.settle(members[: members.index(member) + 1])
    a, b, c = members
    c.leave()
    before = b.owned, a.owned
    talk.settle([a, b])
    gained = (a.owned | b.owned) - (before[0] | before[1])
    assert gained
    assert before[1] <= a.owned
    assert before[0] <= b.owned


def test_a_leaving_member_frees_its_partitions_and_the_epochs_stay() -> None:
    talk = ConsumerTalk({"t": 2})
    only = talk.member("only")
    only.join(["t"])
    response = only.leave()
    assert (response.member_id, response.member_epoch) == ("only", -1)
    assert (talk.group.state, talk.group.epoch) == ("Empty", 2)
    assert talk.group.empty_since_ms == talk.wall_ms
    again = talk.member("again")
    again.join(["t"])
    assert again.assigned == talk.slots("t")
    assert again.epoch == 3
    assert talk.group.empty_since_ms is None


def test_members_without_heartbeats_are_removed() -> None:
    talk = ConsumerTalk({"t": 2})
    first, second = talk.member("first"), talk.member("second")
    first.join(["t"])
    first.follow_assignment()
    second.join(["t"])
    talk.settle([first, second])
    talk.pass_time(SESSION_MS - 1)
    first.heartbeat()
    assert set(talk.group.members) == {"first", "second"}
    talk.pass_time(1)
    assert set(talk.group.members) == {"first"}
    assert talk.group.state == "Assigning"
    first.heartbeat()
    assert first.assigned == talk.slots("t")
    assert talk.refused(second.request()) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    talk, slow, second = two_members(2, ("slow", "second"))
    slow.heartbeat()
    for _ in range(REBALANCE_TIMEOUT_MS // 5000):
        assert "slow" in talk.group.members
        talk.pass_time(5000)
        if "slow" in talk.group.members:
            slow.heartbeat()
        second.heartbeat()
    assert talk.refused(slow.request()) is ErrorCode.UNKNOWN_MEMBER_ID
    second.heartbeat()
    assert second.assigned == talk.slots("t")


def test_giving_up_in_time_stops_the_clock() -> None:
    talk = ConsumerTalk({"t": 2})
    first, second = talk.member("first"), talk.member("second")
    first.join(["t"])
    first.follow_assignment()
    second.join(["t"])
    first.heartbeat()
    talk.settle([first, second])
    for _ in range(20):
        talk.pass_time(5000)
        talk.settle([first, second])
    assert set(talk.group.members) == {"first", "second"}


def test_a_full_group_accepts_no_new_member() -> None:
    talk = ConsumerTalk({"t": 2}, GroupSettings(max_size=1))
    first = talk.member("first")
    first.join(["t"])
    assert talk.refused(joining(member_id="new")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert talk.refused(joining(member_id=""), 0) is ErrorCode.GROUP_MAX_SIZE_REACHED
    first.heartbeat()


def test_only_a_join_creates_a_group() -> None:
    talk = ConsumerTalk({"t": 2})
    for epoch in (1, -1):
        request = ConsumerGroupHeartbeatRequest(group_id="none", member_id="m", member_epoch=epoch)
        assert talk.refused(request) is ErrorCode.GROUP_ID_NOT_FOUND
    assert talk.machine.groups == {}


def test_subscribing_to_something_else_moves_the_group_on() -> None:
    talk = ConsumerTalk({"t": 1, "u": 2})
    first = talk.member("first")
    first.join(["t"])
    first.follow_assignment()
    first.heartbeat()
    first.subscription["subscribed_topic_names"] = ["u"]
    first.heartbeat(full=True)
    assert first.assigned == set(), "the old topic has to be given up"
    first.follow_assignment()
    first.heartbeat()
    assert first.assigned == talk.slots("u")
    assert talk.group.epoch == 2


def test_members_without_a_subscription_belong_to_the_group() -> None:
    talk = ConsumerTalk({"t": 1})
    first, idle = talk.member("first"), talk.member("idle")
    first.join(["t"])
    first.follow_assignment()
    first.heartbeat()
    idle.join([])
    assert (idle.assigned, idle.epoch) == (set(), 1)
    assert talk.group.state == "Stable"


def test_most_votes_choose_the_assignor() -> None:
    talk = ConsumerTalk({"t": 4})
    members = [talk.member(name) for name in "abc"]
    for member, assignor in zip(members, ("range", "uniform", "range"), strict=True):
        member.join(["t"], assignor=assignor)
    talk.settle(members)
    assert [sorted(n for _, n in m.owned) for m in members] == [[0, 1], [2], [3]]


def test_a_write_that_fails_changes_nothing_and_is_made_up_for() -> None:
    talk = ConsumerTalk({"t": 1})
    first = talk.member("first")
    first.join(["t"])
    first.follow_assignment()
    first.heartbeat()
    talk.grow_topic("t")
    talk.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    with pytest.raises(ApiError):
        first.heartbeat()
    talk.pass_time(SESSION_MS)
    assert set(talk.group.members) == {"first"}, (
        "no member is removed if the removal cannot be stored"
    )
    talk.refusal = None
    first.heartbeat()
    assert first.assigned == talk.slots("t")
    talk.pass_time(SESSION_MS)
    assert talk.group.state == "Empty"


def test_ended_groups_leave_nothing() -> None:
    talk = ConsumerTalk({"t": 1})
    first = talk.member("first")
    first.join(["t"], regex="t.*")
    first.leave()
    group = talk.group
    since = len(talk.log)
    for record in group.tombstones():
        talk.log.append(record)
        talk.machine.replay(record, None)
    assert talk.machine.groups == {}
    assert group.state == "Dead"
    assert isinstance(talk.written(since)[-1].key, ConsumerGroupMetadataKey)
    latest = {record.key: record.value for record in talk.log}
    assert set(latest.values()) == {None}
    talk.restart()
    assert talk.machine.groups == {}
