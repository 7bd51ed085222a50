"""Tests AlterPartition: the controller refuses proposals that are based on outdated state."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas.controller import isr_decisions
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from tests.support.talk.controller_talk import ControllerTalk


def test_a_leader_shrinks_and_expands_the_isr(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    shrunk = talk.alter([1, 3])
    assert (shrunk.error_code, shrunk.isr, shrunk.partition_epoch) == (0, [1, 3], 1)
    assert (shrunk.leader_id, shrunk.leader_epoch) == (1, 0)
    assert talk.alter([3, 2, 1]).isr == [1, 2, 3]
    assert talk.partition().partition_epoch == 2


def test_the_same_isr_again_changes_nothing(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    before = talk.end_offset
    again = talk.alter([1, 2, 3])
    assert (again.error_code, again.partition_epoch) == (0, 0)
    assert talk.end_offset == before


def test_a_proposal_of_an_earlier_leader_epoch_is_fenced(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    seen = talk.partition()
    talk.fence(1)
    late = talk.alter([1, 2], seen=seen)
    assert late.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert talk.partition().leader == 2


def test_a_proposal_from_before_the_last_change_is_refused(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    seen = talk.partition()
    talk.fence(3)
    talk.heartbeat(3)
    late = talk.alter([1, 2, 3], seen=seen)
    assert late.error_code == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("ahead", [{"leader_epoch": 1}, {"partition_epoch": 1}])
def test_what_is_not_known_yet_sends_the_leader_to_another_controller(
    talk: ControllerTalk, ahead: dict[str, Any]
) -> None:
    talk.create([1, 2, 3])
    answer = talk.alter([1], seen=replace(talk.partition(), **ahead))
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


def test_only_the_leader_proposes(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    assert talk.alter([1, 2], sender=2).error_code == ErrorCode.INVALID_REQUEST


def test_an_earlier_process_of_the_leader_is_refused_altogether(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    epoch = talk.broker(1).broker_epoch
    talk.restart(1)
    with pytest.raises(ApiError) as refused:
        talk.alter([1], sender=1, sender_epoch=epoch)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_fenced_replica_does_not_join(talk: ControllerTalk) -> None:
    """KAFKA-14154."""
    talk.create([1, 2, 3])
    talk.fence(3)
    assert talk.alter([1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_stopping_replica_does_not_join(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.heartbeat(3, stop=True)
    assert talk.broker(3).stopping
    assert talk.alter([1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_replica_joins_only_as_the_process_that_fetched(talk: ControllerTalk) -> None:
    """KIP-903: a replica caught up, lost records in a restart, and would join regardless."""
    talk.create([1, 2, 3])
    fetched_with = talk.broker(3).broker_epoch
    talk.restart(3)
    talk.heartbeat(3)
    late = talk.alter([1, 2, 3], member_epochs={3: fetched_with})
    assert late.error_code == ErrorCode.INELIGIBLE_REPLICA
    assert talk.alter([1, 2, 3]).error_code == ErrorCode.NONE


def test_only_members_may_be_named_without_their_process(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    assert talk.alter([1, 2], member_epochs={2: -1}).error_code == ErrorCode.NONE
    joins = talk.alter([1, 2, 3], member_epochs={3: -1})
    assert joins.error_code == ErrorCode.INELIGIBLE_REPLICA


@pytest.mark.parametrize("isr", [[], [2, 3], [1, 1], [1, 4]])
def test_what_cannot_be_an_isr_is_refused(talk: ControllerTalk, isr: list[int]) -> None:
    talk.start(4)
    talk.create([1, 2, 3])
    assert talk.alter(isr).error_code == ErrorCode.INVALID_REQUEST
    assert talk.partition().isr == [1, 2, 3]


def test_unknown_partitions_are_named_as_such(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    known = talk.image.topics["orders"].topic_id
    ask = AlterPartitionRequestPartitionData
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=talk.broker(1).broker_epoch,
        topics=[
            AlterPartitionRequestTopicData(topic_id=bytes(16), partitions=[ask()]),
            AlterPartitionRequestTopicData(topic_id=known, partitions=[ask(partition_index=1)]),
        ],
    )
    records, response = isr_decisions.alter_partition(talk.image, request, talk.defaults)
    assert records == []
    assert [topic.partitions[0].error_code for topic in response.topics] == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_partition_is_altered_once_a_request(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    members = [BrokerState(broker_id=1, broker_epoch=talk.broker(1).broker_epoch)]
    proposal = AlterPartitionRequestPartitionData(new_isr_with_epochs=members)
    topic = AlterPartitionRequestTopicData(
        topic_id=talk.image.topics["orders"].topic_id, partitions=[proposal, proposal]
    )
    request = AlterPartitionRequest(
        broker_id=1, broker_epoch=talk.broker(1).broker_epoch, topics=[topic]
    )
    records, response = isr_decisions.alter_partition(talk.image, request, talk.defaults)
    assert len(records) == 1
    codes = [each.error_code for each in response.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


def test_a_leader_with_a_damaged_log_resigns_to_an_in_sync_replica(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3], min_insync_replicas="3")
    answer = talk.alter([2, 3], recovery_state=isr_decisions.LOG_DAMAGED)
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    after = talk.partition()
    assert (after.leader, after.leader_epoch, after.isr) == (2, 1, [2, 3])
    assert after.eligible == [], "it may lack acknowledged records"


@pytest.mark.parametrize("isr", [[], [1], [1, 2], [4]])
def test_leadership_is_not_resigned_to_self_none_or_an_unknown_broker(
    talk: ControllerTalk, isr: list[int]
) -> None:
    talk.create([1, 2, 3])
    answer = talk.alter(isr, recovery_state=isr_decisions.LOG_DAMAGED)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_leader_whose_disk_is_full_resigns_and_is_trusted_with_what_it_has(
    talk: ControllerTalk,
) -> None:
    talk.create([1, 2, 3], min_insync_replicas="3")
    answer = talk.alter([2, 3], recovery_state=isr_decisions.DISK_REFUSES)
    assert (answer.error_code, answer.leader_id) == (ErrorCode.NEW_LEADER_ELECTED, 2)
    after = talk.partition()
    assert (after.leader, after.leader_epoch, after.isr) == (2, 1, [2, 3])
    assert after.eligible == [1], "it has all acknowledged records"
    assert not after.unclean


@pytest.mark.parametrize("isr", [[], [1], [1, 2], [4]])
def test_a_leader_resigns_only_to_other_replicas(talk: ControllerTalk, isr: list[int]) -> None:
    talk.create([1, 2, 3])
    answer = talk.alter(isr, recovery_state=isr_decisions.DISK_REFUSES)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
