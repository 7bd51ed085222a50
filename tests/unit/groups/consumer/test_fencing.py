"""Tests epochs and instance ids: which members may continue, and which must rejoin."""

import pytest

from barnabas.groups.consumer.consumer_member import Standing
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.settings import GroupSettings
from tests.support.talk.consumer_talk import ConsumerTalk, two_members

SESSION_MS = GroupSettings().consumer_session_timeout_ms
STALE = ErrorCode.STALE_MEMBER_EPOCH


def test_epochs_that_are_not_the_members_are_fenced() -> None:
    talk, first, second = two_members()
    talk.settle([first, second])
    talk.grow_topic("t")
    talk.settle([first, second])
    assert first.epoch == 3
    for epoch in (1, 4):
        first.epoch = epoch
        first.drop_all()
        assert talk.refused(first.request(full=True)) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_lost_response_is_made_up_for() -> None:
    talk, first, _second = two_members()
    first.heartbeat()
    first.follow_assignment()
    lost = talk.heartbeat(first.request())
    assert lost.member_epoch == first.epoch + 1
    first.lose_response()
    again = first.heartbeat(full=True)
    assert again.member_epoch == lost.member_epoch
    assert first.assigned == first.owned


def test_the_previous_epoch_is_refused_without_or_with_too_many_partitions() -> None:
    talk, first, _second = two_members()
    first.heartbeat()
    had_all = first.request(full=True)
    first.follow_assignment()
    silent = first.request()
    silent.topic_partitions = None
    talk.heartbeat(first.request())
    assert talk.refused(silent) is ErrorCode.FENCED_MEMBER_EPOCH
    assert talk.refused(had_all) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_rejoining_member_continues_from_its_state() -> None:
    talk, first, second = two_members()
    talk.settle([first, second])
    first.join(["t"])
    assert (first.epoch, len(first.assigned)) == (2, 2)
    talk.settle([first, second])
    assert first.owned.isdisjoint(second.owned)


def test_an_instance_id_is_its_members_until_it_leaves() -> None:
    talk = ConsumerTalk({"t": 2})
    old, new = talk.member("old", "i"), talk.member("new", "i")
    old.join(["t"])
    with pytest.raises(ApiError) as refused:
        new.join(["t"])
    assert refused.value.code is ErrorCode.UNRELEASED_INSTANCE_ID
    stranger = talk.member("stranger", "other")
    stranger.epoch = 1
    assert talk.refused(stranger.request()) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_comes_back_to_what_it_had() -> None:
    talk = ConsumerTalk({"t": 4})
    old, other = talk.member("old", "i"), talk.member("other")
    old.join(["t"])
    other.join(["t"])
    talk.settle([old, other])
    had, epoch = old.owned, talk.group.epoch
    response = old.leave(-2)
    assert (response.member_id, response.member_epoch) == ("old", -2)
    other.heartbeat()
    assert other.assigned == other.owned, "the partitions of the other member are kept for it"

    new = talk.member("new", "i")
    new.join(["t"])
    assert (new.assigned, new.epoch, talk.group.epoch) == (had, epoch, epoch)
    assert set(talk.group.members) == {"new", "other"}
    talk.settle([new, other])
    old.epoch = epoch
    assert talk.refused(old.request()) is ErrorCode.FENCED_INSTANCE_ID
    old.epoch = -1
    assert talk.refused(old.request()) is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_may_come_back_with_another_subscription() -> None:
    talk = ConsumerTalk({"t": 2, "u": 1})
    old = talk.member("old", "i")
    old.join(["t"])
    old.leave(-2)
    assert set(talk.group.members["old"].standing.assigned.values()) == {0}
    new = talk.member("new", "i")
    new.join(["u"])
    assert new.assigned == talk.slots("u")


def test_a_static_member_may_come_back_under_its_own_id() -> None:
    talk = ConsumerTalk({"t": 2})
    member = talk.member("same", "i")
    member.join(["t"])
    member.leave(-2)
    assert talk.refused(member.request()) is ErrorCode.FENCED_MEMBER_EPOCH
    member.join(["t"])
    assert member.assigned == talk.slots("t")
    talk.restart()
    assert talk.group.state == "Stable"


def test_a_static_member_may_join_again_as_itself() -> None:
    talk = ConsumerTalk({"t": 2})
    member = talk.member("same", "i")
    member.join(["t"])
    member.join(["t"])
    assert (member.epoch, member.assigned) == (1, talk.slots("t"))


def test_a_static_member_that_does_not_return_is_removed() -> None:
    talk = ConsumerTalk({"t": 2})
    old = talk.member("old", "i")
    old.join(["t"])
    old.leave(-2)
    talk.pass_time(SESSION_MS)
    assert talk.group.is_empty
    new = talk.member("new", "i")
    new.join(["t"])
    assert new.assigned == talk.slots("t")


def test_a_static_member_may_leave_permanently() -> None:
    talk = ConsumerTalk({"t": 2})
    old = talk.member("old", "i")
    old.join(["t"])
    old.leave()
    assert talk.group.is_empty


def commit(talk: ConsumerTalk, epoch: int, *partitions: int, member_id: str = "first") -> str:
    named = [TopicPartition("t", number) for number in partitions]
    try:
        talk.group.check_commit(member_id, None, epoch, transactional=False)
    except ApiError as error:
        late = error.code is STALE and talk.group.may_commit_late(member_id, epoch, named)
        return "NONE" if late else error.code.name
    return "NONE"


def test_commits_need_the_epoch_or_a_partition_that_was_and_is_the_members() -> None:
    talk, first, _second = two_members()
    first.heartbeat()
    kept = min(number for _, number in first.assigned)
    given = min(number for _, number in talk.slots("t") - first.assigned)
    first.follow_assignment()
    first.heartbeat()
    assert first.epoch == 2
    assert commit(talk, 2, kept, given) == "NONE", "only the epoch is checked"
    assert commit(talk, 1, kept) == "NONE", "the member owned it in epoch 1, and still does"
    assert commit(talk, 1, kept, given) == STALE.name
    assert commit(talk, 1) == STALE.name
    assert commit(talk, 3, kept) == STALE.name
    assert commit(talk, 0, kept) == STALE.name
    assert commit(talk, 2, kept, member_id="nobody") == "UNKNOWN_MEMBER_ID"
    assert commit(talk, -1, kept, member_id="") == "UNKNOWN_MEMBER_ID"


def test_what_is_pending_may_still_be_committed() -> None:
    talk, _first, _second = two_members()
    topic_id = talk.image.topics["t"].topic_id
    standing = Standing(epoch=5, assigned={(topic_id, 0): 4}, pending_revocation={(topic_id, 1): 3})
    talk.group.put_standing("first", standing)
    assert commit(talk, 4, 0, 1) == "NONE"
    assert commit(talk, 3, 1) == "NONE"
    assert commit(talk, 3, 0, 1) == STALE.name
    assert commit(talk, 2, 1) == STALE.name


def test_any_client_may_commit_to_an_empty_group() -> None:
    talk, first, second = two_members()
    talk.group.check_commit("", None, -1, transactional=True)
    with pytest.raises(ApiError):
        talk.group.check_commit("", "i", -1, transactional=True)
    first.leave()
    second.leave()
    talk.group.check_commit("", None, -1, transactional=False)


def test_offsets_are_shown_to_members_of_this_epoch_and_to_tools() -> None:
    talk, _first, _second = two_members()
    talk.group.check_fetch(None, -1)
    talk.group.check_fetch("first", 1)
    for member_id, epoch, code in (("first", 2, STALE), ("nobody", 1, ErrorCode.UNKNOWN_MEMBER_ID)):
        with pytest.raises(ApiError) as refused:
            talk.group.check_fetch(member_id, epoch)
        assert refused.value.code is code
