"""The metadata quorum, from the controller's answer to DescribeQuorum."""

from collections.abc import Mapping

from barnabas.health.cluster_facts import Member, Quorum
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumResponsePartitionData,
    ReplicaState,
)

NO_LEADER = -1


def quorum_of(
    answer: DescribeQuorumResponsePartitionData, addresses: Mapping[int, str], now_ms: int
) -> Quorum:
    """Return the quorum; `addresses` are those of its voters."""
    leader = next(
        (each for each in answer.current_voters if each.replica_id == answer.leader_id), None
    )
    if leader is not None and leader.last_fetch_timestamp > 0:
        now_ms = leader.last_fetch_timestamp  # the clocks of two computers may differ
    end = max(answer.high_watermark, leader.log_end_offset if leader is not None else 0)

    def member(each: ReplicaState) -> Member:
        is_leader = each.replica_id == answer.leader_id
        heard = each.last_fetch_timestamp
        unheard = None if heard <= 0 else max(0, now_ms - heard)
        return Member(
            id=each.replica_id,
            directory=each.replica_directory_id,
            lag=None if each.log_end_offset < 0 else max(0, end - each.log_end_offset),
            last_contact_ms=0 if is_leader else unheard,
        )

    return Quorum(
        leader=None if answer.leader_id == NO_LEADER else answer.leader_id,
        epoch=answer.leader_epoch,
        high_watermark=answer.high_watermark,
        voters=sorted(map(member, answer.current_voters), key=lambda each: each.id),
        observers=sorted(map(member, answer.observers), key=lambda each: each.id),
        addresses=addresses,
    )
