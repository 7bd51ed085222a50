"""Tests the membership of a share consumer: joins, assignments, fencing, leaving."""

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.wire.share_membership import ShareMembership, Step, new_member_id
from barnabas.wire.share_values import Place

TOPIC = b"t" * 16


def answer(
    code: ErrorCode = ErrorCode.NONE, epoch: int = 1, partitions: list[int] | None = None
) -> ShareGroupHeartbeatResponse:
    assignment = None
    if partitions is not None:
        topic = TopicPartitions(topic_id=TOPIC, partitions=partitions)
        assignment = Assignment(topic_partitions=[topic])
    return ShareGroupHeartbeatResponse(
        error_code=code, member_epoch=epoch, heartbeat_interval_ms=5000, assignment=assignment
    )


def member() -> ShareMembership:
    membership = ShareMembership("jobs", ["jobs"])
    membership.answered(answer(partitions=[0, 1]))
    return membership


def test_the_first_heartbeat_joins_and_later_ones_keep_the_epoch() -> None:
    membership = ShareMembership("jobs", ["jobs"])
    first = membership.heartbeat()
    assert (first.member_epoch, first.subscribed_topic_names) == (0, ["jobs"])
    assert membership.answered(answer(epoch=3, partitions=[0])) is Step.GO_ON
    assert membership.assigned == {Place(TOPIC, 0)}
    assert membership.wait_s == 5
    second = membership.heartbeat()
    assert (second.member_epoch, second.subscribed_topic_names) == (3, None)
    assert second.member_id == first.member_id


def test_a_response_without_an_assignment_changes_none() -> None:
    membership = member()
    membership.answered(answer(epoch=2))
    assert membership.assigned == {Place(TOPIC, 0), Place(TOPIC, 1)}
    membership.answered(answer(epoch=3, partitions=[]))
    assert membership.assigned == frozenset()


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_fenced_member_joins_again_at_once(code: ErrorCode) -> None:
    membership = member()
    assert membership.answered(answer(code)) is Step.GO_ON
    assert (membership.assigned, membership.wait_s) == (frozenset(), 0)
    assert membership.heartbeat().member_epoch == 0


def test_errors_that_pass_and_errors_that_do_not() -> None:
    membership = member()
    assert membership.answered(answer(ErrorCode.NOT_COORDINATOR)) is Step.FIND_COORDINATOR
    assert membership.answered(answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)) is Step.GO_ON
    assert membership.is_member
    assert membership.answered(answer(ErrorCode.GROUP_AUTHORIZATION_FAILED)) is Step.FAIL


def test_a_group_of_another_type_refuses_a_member_that_joins() -> None:
    joining = ShareMembership("jobs", ["jobs"])
    assert joining.answered(answer(ErrorCode.GROUP_ID_NOT_FOUND)) is Step.FAIL
    assert member().answered(answer(ErrorCode.GROUP_ID_NOT_FOUND)) is Step.GO_ON


def test_a_member_leaves_with_its_own_epoch() -> None:
    assert member().leave().member_epoch == -1


def test_ids_are_uuids_in_kafkas_form() -> None:
    found = {new_member_id() for _ in range(10)}
    assert len(found) == 10
    assert {len(each) for each in found} == {22}
