"""Tests the records of share groups: their form, and that replay leads to the same state."""

from typing import Any

from barnabas.groups.share.share_group import ShareGroup
from barnabas.model.errors import ErrorCode
from barnabas.protocol.coordinator_codec import encode
from barnabas.protocol.coordinator_records.share_group_metadata import ShareGroupMetadataKey
from tests.support.talk.share_group_talk import GROUP, ShareGroupTalk, share_reader


def state_of(group: ShareGroup) -> dict[str, Any]:
    """Return everything of a group that is stored."""
    return {
        "epochs": (group.epoch, group.assignment_epoch, group.metadata_hash),
        "members": group.members,
        "targets": group.targets,
        "states": group.states,
    }


def kinds(talk: ShareGroupTalk, since: int = 0) -> list[int]:
    return [int.from_bytes(record.key[:2], "big") for record in talk.log[since:]]


def test_the_records_have_kafkas_types_and_order() -> None:
    talk = ShareGroupTalk({"t": 1})
    first = talk.member("first")
    first.join("t")
    assert kinds(talk) == [10, 11, 13, 12, 14, 15, 15]
    before = len(talk.log)
    first.heartbeat()
    assert kinds(talk, before) == [11, 13, 12, 14]
    before = len(talk.log)
    first.leave()
    assert kinds(talk, before) == [14, 13, 10, 11]


def test_replay_leads_to_the_same_state() -> None:
    talk, first = share_reader(3)
    second = talk.member("second")
    second.join("t")
    first.heartbeat()
    talk.create_topic("other", 1)
    second.heartbeat("other")
    before = state_of(talk.group)
    talk.restart()
    assert state_of(talk.group) == before
    assert first.heartbeat().error_code == 0


def test_a_compacted_log_leads_to_the_same_state() -> None:
    talk, first = share_reader(3)
    second = talk.member("second")
    second.join("t")
    first.leave()
    second.heartbeat()
    before = state_of(talk.group)
    talk.log = list({record.key: record for record in talk.log}.values())
    talk.restart()
    assert state_of(talk.group) == before
    talk.log = [record for record in talk.log if record.value is not None]
    talk.restart()
    assert state_of(talk.group) == before


def test_an_assignment_that_was_not_stored_is_computed_again() -> None:
    talk = ShareGroupTalk({"t": 1})
    first = talk.member("first")
    first.join("t")
    talk.restart()
    first.heartbeat()
    assert first.assigned == talk.slots("t")


def test_tombstones_of_unknown_groups_are_ignored() -> None:
    talk = ShareGroupTalk()
    talk.log.append(encode(ShareGroupMetadataKey(group_id=GROUP), None))
    talk.restart()
    assert talk.machine.groups == {}


def test_without_share_coordinators_there_are_no_share_groups() -> None:
    talk, _ = share_reader(1)
    talk.image.feature_level = 1
    member = talk.member("second")
    assert talk.refused(lambda: member.join("t")) is ErrorCode.UNSUPPORTED_VERSION
