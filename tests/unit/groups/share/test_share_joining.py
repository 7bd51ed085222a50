"""Tests members of share groups that join, read partitions together, leave and expire."""

import pytest

from barnabas.metadata.metadata_records import ConfigChanged
from barnabas.model.errors import ErrorCode
from barnabas.model.settings import ShareSettings
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.talk.share_group_talk import GROUP, ShareGroupTalk, share_reader

SESSION_MS = ShareSettings().session_timeout_ms


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": ""},
        {"group_id": " "},
        {"group_id": "g" * 32_768},
        {"member_id": ""},
        {"rack_id": " "},
        {"subscribed_topic_names": None},
        {"subscribed_topic_names": []},
        {"member_epoch": -2},
        {"member_id": "", "member_epoch": -1},
        {"member_id": " ", "member_epoch": 3},
    ],
)
def test_what_cannot_be_meant_is_refused(fields: dict[str, object]) -> None:
    talk = ShareGroupTalk({"t": 1})
    request = ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", subscribed_topic_names=["t"]
    )
    for name, value in fields.items():
        setattr(request, name, value)
    assert talk.refused(lambda: talk.heartbeat(request)) is ErrorCode.INVALID_REQUEST


def test_a_member_reads_once_the_partitions_are_initialized() -> None:
    talk = ShareGroupTalk({"t": 3, "other": 2})
    first = talk.member("first")
    response = first.join("t")
    assert (response.member_epoch, first.assigned) == (1, set())
    assert response.heartbeat_interval_ms == 200
    response = first.heartbeat()
    assert (response.member_epoch, first.assigned) == (2, talk.slots("t"))
    assert response.heartbeat_interval_ms == 5000
    assert talk.group.state == "Stable"


def test_an_assignment_is_sent_if_it_may_be_new() -> None:
    _, first = share_reader()
    assert first.heartbeat().assignment is None
    assert first.heartbeat("t").assignment is not None
    first.epoch -= 1  # the response with the new epoch was lost
    assert first.heartbeat().assignment is not None


def test_members_divide_the_partitions() -> None:
    talk, first = share_reader(4)
    second = talk.member("second")
    second.join("t")
    assert len(second.assigned) == 2
    talk.settle([first, second])
    assert first.assigned | second.assigned == talk.slots("t")
    assert not first.assigned & second.assigned


def test_members_beyond_the_partitions_share_them() -> None:
    talk, first = share_reader(1)
    others = [talk.member(name) for name in ("second", "third")]
    for other in others:
        other.join("t")
    talk.settle([first, *others])
    assert all(member.assigned == talk.slots("t") for member in (first, *others))


def test_a_heartbeat_without_change_stores_nothing() -> None:
    talk, first = share_reader()
    before = len(talk.log)
    for _ in range(3):
        first.heartbeat()
        first.heartbeat("t")
    assert len(talk.log) == before


def test_a_member_that_leaves_gives_its_partitions_to_others() -> None:
    talk, first = share_reader(2)
    second = talk.member("second")
    second.join("t")
    talk.settle([first, second])
    response = first.leave()
    assert (response.member_id, response.member_epoch) == ("first", -1)
    talk.settle([second])
    assert second.assigned == talk.slots("t")
    second.leave()
    assert talk.group.state == "Empty"
    assert talk.group.epoch == 5


def test_a_silent_member_is_removed() -> None:
    talk, first = share_reader()
    talk.pass_time(SESSION_MS - 100)
    assert talk.group.members
    talk.pass_time(100)
    assert talk.group.state == "Empty"
    assert talk.refused(first.heartbeat) is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_member() -> None:
    talk, first = share_reader()
    for _ in range(3):
        talk.pass_time(SESSION_MS - 100)
        first.heartbeat()
    assert talk.group.members


def test_sessions_begin_anew_with_another_coordinator() -> None:
    talk, _ = share_reader()
    talk.pass_time(SESSION_MS - 1000)
    talk.restart()
    talk.pass_time(SESSION_MS - 1)
    assert talk.group.members
    talk.pass_time(1)
    assert not talk.group.members


def test_a_group_has_a_timeout_and_an_interval_of_its_own() -> None:
    talk, first = share_reader()
    configs = {"share.session.timeout.ms": "60000", "share.heartbeat.interval.ms": "15000"}
    talk.image.replay(ConfigChanged(kind="group", name=GROUP, changes=dict(configs)))
    assert first.heartbeat().heartbeat_interval_ms == 15_000
    talk.pass_time(59_900)
    assert talk.group.members
    talk.pass_time(100)
    assert not talk.group.members


def test_a_full_group_takes_only_its_members() -> None:
    talk = ShareGroupTalk({"t": 1}, ShareSettings(max_size=1))
    first, second = talk.member("first"), talk.member("second")
    first.join("t")
    assert talk.refused(lambda: second.join("t")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    first.join("t")


def test_a_member_changes_its_subscription() -> None:
    talk, first = share_reader(2)
    talk.create_topic("other", 1)
    first.heartbeat("t", "other")
    first.heartbeat()
    assert first.assigned == talk.slots("t", "other")
    first.heartbeat("other")
    assert first.assigned == talk.slots("other")


def test_a_topic_that_comes_later_is_read() -> None:
    talk = ShareGroupTalk()
    first = talk.member("first")
    first.join("later")
    assert first.heartbeat().heartbeat_interval_ms == 5000
    talk.create_topic("later", 2)
    talk.settle([first])
    assert first.assigned == talk.slots("later")


def test_partitions_that_come_later_are_read() -> None:
    talk, first = share_reader(1)
    talk.grow_topic("t", 2)
    talk.settle([first])
    assert first.assigned == talk.slots("t")
    assert len(first.assigned) == 3
    assert {kept.start_offset for kept in talk.states.kept.values()} == {-1}


def test_a_description() -> None:
    talk, first = share_reader(2)
    group = talk.run(lambda: talk.machine.share.describe(GROUP))
    assert (group.group_state, group.assignor_name) == ("Stable", "simple")
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    (member,) = group.members
    assert (member.member_id, member.member_epoch) == ("first", first.epoch)
    assert (member.client_id, member.client_host) == ("client", "/host")
    assert member.subscribed_topic_names == ["t"]
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("t", [0, 1])
    (listed,) = talk.run(lambda: talk.machine.list_groups([], ["SHARE"]))
    assert (listed.group_id, listed.group_type, listed.protocol_type) == (GROUP, "share", "share")
