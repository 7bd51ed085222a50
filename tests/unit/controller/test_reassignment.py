"""Tests moving partitions between brokers."""

import pytest

from barnabas.controller.reassignment import alter_reassignments, list_reassignments
from barnabas.metadata.image import Image
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartitionResponse,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.talk.controller_talk import ControllerTalk


@pytest.fixture
def talk(talk: ControllerTalk) -> ControllerTalk:
    talk.start(4)
    talk.start(5)
    return talk


def test_a_move_waits_for_its_new_replicas(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    assert talk.reassign([2, 3, 4]).error_code == ErrorCode.NONE
    moving = talk.partition()
    assert moving.replicas == [2, 3, 4, 1]
    assert (moving.adding, moving.removing) == ([4], [1])
    assert (moving.leader, moving.isr, moving.leader_epoch) == (1, [2, 3, 1], 0)


def test_a_move_is_completed_when_they_are_in_sync_and_the_leader_goes(
    talk: ControllerTalk,
) -> None:
    talk.create([1, 2, 3])
    talk.reassign([2, 3, 4])
    answer = talk.alter([1, 2, 3, 4])
    assert (answer.error_code, answer.leader_id) == (ErrorCode.NEW_LEADER_ELECTED, 2)
    moved = talk.partition()
    assert (moved.replicas, moved.isr, moved.leader) == ([2, 3, 4], [2, 3, 4], 2)
    assert (moved.adding, moved.removing, moved.leader_epoch) == ([], [], 1)


def test_a_leader_that_stays_leads_on_in_a_new_epoch(talk: ControllerTalk) -> None:
    """A removed replica fetches with an outdated leader epoch."""
    talk.create([1, 2, 3])
    talk.reassign([1, 2, 4])
    answer = talk.alter([1, 2, 3, 4])
    assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (0, 1, 1)
    assert answer.isr == [1, 2, 4]


def test_a_move_without_a_new_replica_is_completed_at_once(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.reassign([3, 1])
    moved = talk.partition()
    assert (moved.replicas, moved.isr, moved.leader, moved.removing) == ([3, 1], [3, 1], 1, [])


def test_another_order_makes_another_preferred_leader(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.reassign([3, 2, 1])
    assert (talk.partition().replicas, talk.partition().leader) == ([3, 2, 1], 1)
    assert talk.partition().leader_epoch == 0


def test_a_move_to_where_it_is_changes_nothing(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    end = talk.end_offset
    assert talk.reassign([1, 2, 3]).error_code == ErrorCode.NONE
    assert talk.end_offset == end


def test_a_replica_with_everything_stays_in_a_too_small_isr(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.reassign([1, 4])
    talk.fence(1)
    talk.alter([2, 3, 4])
    assert talk.partition().removing == [2, 3], "only 4 would be in sync, and two are required"
    talk.heartbeat(1)
    talk.alter([1, 2, 3, 4])
    assert (talk.partition().replicas, talk.partition().isr) == ([1, 4], [1, 4])


def test_the_only_one_in_sync_is_not_dropped(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.alter([1])
    talk.reassign([2, 3])
    assert (talk.partition().removing, talk.partition().isr) == ([1], [1])
    talk.alter([1, 2, 3])
    assert (talk.partition().replicas, talk.partition().leader) == ([2, 3], 2)


def test_a_cancelled_move_keeps_the_old_replicas(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.reassign([4, 5, 1])
    talk.alter([1, 2, 3, 4])
    assert talk.reassign(None).error_code == ErrorCode.NONE
    back = talk.partition()
    assert sorted(back.replicas) == [1, 2, 3]
    assert (back.leader, sorted(back.isr)) == (1, [1, 2, 3])
    assert (back.adding, back.removing) == ([], [])


def test_a_move_is_not_cancelled_if_only_new_replicas_have_everything(
    talk: ControllerTalk,
) -> None:
    talk.create([1, 2], min_insync_replicas="1")
    talk.reassign([4, 5])
    talk.alter([1, 2, 4])
    talk.fence(1)
    talk.fence(2)
    assert talk.partition().isr == [4]
    refused = talk.reassign(None)
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert talk.partition().adding == [4, 5]


def test_a_cancelled_move_takes_leadership_from_a_new_replica(talk: ControllerTalk) -> None:
    talk.create([1, 2])
    talk.reassign([4, 5])
    talk.alter([1, 2, 4])
    talk.fence(1)
    assert talk.partition().leader == 4
    talk.reassign(None)
    assert (talk.partition().leader, talk.partition().isr) == (2, [2])


def test_nothing_to_cancel(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    assert talk.reassign(None).error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_another_target_is_taken_from_where_it_all_began(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.reassign([1, 2, 4])
    talk.reassign([1, 2, 5])
    moving = talk.partition()
    assert (moving.replicas, moving.adding, moving.removing) == ([1, 2, 5, 3], [5], [3])


def test_another_target_still_waits_for_the_replica_that_was_being_added(
    talk: ControllerTalk,
) -> None:
    talk.create([1, 2, 3])
    talk.reassign([1, 2, 4])
    talk.reassign([1, 4, 5])
    assert talk.partition().adding == [4, 5]
    assert talk.partition().removing == [2, 3]


def test_eligible_replicas_go_with_their_move(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.alter([1])
    assert talk.partition().eligible == [2, 3]
    talk.reassign([1, 2, 4])
    assert talk.partition().eligible == [2, 3]
    talk.alter([1, 4])
    moved = talk.partition()
    assert (moved.replicas, moved.isr, moved.eligible) == ([1, 2, 4], [1, 4], [])


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_targets_that_cannot_be(talk: ControllerTalk, target: list[int], code: ErrorCode) -> None:
    talk.create([1, 2, 3])
    answer: ReassignablePartitionResponse = talk.reassign(target)
    assert answer.error_code == code
    assert answer.error_message


def test_the_replication_factor_is_kept_where_the_request_says_so(talk: ControllerTalk) -> None:
    """KIP-860."""
    talk.create([1, 2, 3])
    refused = talk.reassign([1, 2], may_change_count=False)
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    talk.reassign([1, 2, 4])
    assert talk.reassign([1, 2, 5], may_change_count=False).error_code == ErrorCode.NONE


def test_an_unknown_partition_does_not_move(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    assert talk.reassign([1], number=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_moves_under_way_are_listed(talk: ControllerTalk) -> None:
    talk.create([1, 2], [2, 3], [3, 1])
    talk.reassign([1, 4], number=1)
    everything = list_reassignments(talk.image, ListPartitionReassignmentsRequest(topics=None))
    (topic,) = everything.topics
    (found,) = topic.partitions
    assert (topic.name, found.partition_index, found.replicas) == ("orders", 1, [1, 4, 2, 3])
    assert (found.adding_replicas, found.removing_replicas) == ([1, 4], [2, 3])
    asked = ListPartitionReassignmentsTopics(name="orders", partition_indexes=[0, 7])
    nothing = ListPartitionReassignmentsTopics(name="nothing", partition_indexes=[1])
    some = ListPartitionReassignmentsRequest(topics=[asked, nothing])
    assert list_reassignments(talk.image, some).topics == []


@pytest.mark.parametrize("asked", [True, False])
def test_a_request_without_topics_is_answered_with_the_default(asked: bool) -> None:
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=asked)
    answer = alter_reassignments(Image(), request, {})
    assert answer.records == []
    assert answer.response.allow_replication_factor_change
